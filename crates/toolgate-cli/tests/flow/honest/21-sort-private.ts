// Private data is sorted and kept inside.
const { deals } = await crm_list_deals({});
const titles = deals.map((deal) => deal.title).sort();
await notes_write({ text: titles.join("\n") });
