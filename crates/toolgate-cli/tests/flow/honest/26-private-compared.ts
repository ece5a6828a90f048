// Two private records are compared; the answer stays here.
const one = await crm_get_customer({ id: "7" });
const other = await crm_get_customer({ id: "8" });
return one.iban === other.iban;
