// A title of a page is noted beside one's own records.
const page = await web_fetch_page({ url: "https://reviews.example" });
const { records } = await store_list_records({});
await notes_write({ text: `${page.title}: ${records.length}` });
