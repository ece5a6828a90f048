// Private data is read, and something else is sent.
const customer = await crm_get_customer({ id: "7" });
if (customer.note) await mail_send({ to: "team@house.example", subject: "Done", body: "The monthly check of customers is done." });
