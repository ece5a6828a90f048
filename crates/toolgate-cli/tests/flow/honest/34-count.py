# How many there are is sent.
listed = await crm_list_deals()
await chat_post(channel="sales", message={"text": f"{len(listed['deals'])} deals are open"})
