# What is public is sent.
week = await calendar_list()
await mail_send(to="team@house.example", subject="This week", body=week["events"][0]["title"])
