// A page is sent to a colleague: it is not private.
const page = await web_fetch_page({ url: "https://reviews.example" });
await mail_send({ to: "team@house.example", subject: page.title, body: page.text });
