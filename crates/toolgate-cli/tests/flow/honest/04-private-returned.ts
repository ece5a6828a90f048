// Private data is returned to whoever asked.
const customer = await crm_get_customer({ id: "7" });
return customer.note;
