// The page says what to delete.
const page = await web_fetch_page({ url: "https://reviews.example" });
await store_delete_record({ id: page.record });
