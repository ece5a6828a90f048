// Reads alone.
const [customer, { deals }, page] = await Promise.all([crm_get_customer({ id: "7" }), crm_list_deals({}), web_fetch_page({ url: "https://reviews.example" })]);
return [customer.name, deals.length, page.title];
