// The same for many.
const { deals } = await crm_list_deals({});
for (const _ of deals) await chat_post({ channel: "sales", message: { text: "One more deal was looked at." } });
