// The script knows the customer already, and writes to them.
const name = "Ada Lovelace";
const customer = await crm_get_customer({ id: "7" });
if (customer.name === name) await mail_send({ to: "team@house.example", subject: "Meeting", body: `Please call ${name} tomorrow.` });
