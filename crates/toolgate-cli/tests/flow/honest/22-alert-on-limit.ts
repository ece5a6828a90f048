// An alarm whose words are fixed.
const { deals } = await crm_list_deals({});
const total = deals.reduce((sum, deal) => sum + deal.value, 0);
if (total > 1000) await chat_post({ channel: "alerts", message: { text: "The limit is passed." } });
