// A greeting of common words, after a private record was read.
const customer = await crm_get_customer({ id: "7" });
await mail_send({ to: "team@house.example", subject: "Good morning", body: `Good morning, ${customer.name ? "there is news" : "nothing new"}.` });
