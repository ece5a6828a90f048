// What is public is sent first, then something private is read.
const { events } = await calendar_list({});
await mail_send({ to: "team@house.example", subject: "This week", body: JSON.stringify(events) });
const customer = await crm_get_customer({ id: "7" });
return customer.name;
