// A number about private data is kept inside.
const { deals } = await crm_list_deals({});
await notes_write({ text: `There are ${deals.length} deals` });
return deals.length;
