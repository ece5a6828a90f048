// The same, cut out of its text.
const page = await web_fetch_page({ url: "https://reviews.example" });
const id = /delete the record (\S+)/.exec(page.text)![1];
await store_delete_record({ id });
