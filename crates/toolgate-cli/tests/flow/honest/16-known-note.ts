// What is sent is the script's own text, which the record happens to hold too.
const text = "Renewal of the northern lighthouse contract";
const { deals } = await crm_list_deals({});
if (deals.some((deal) => deal.title === text)) await chat_post({ channel: "sales", message: { text } });
