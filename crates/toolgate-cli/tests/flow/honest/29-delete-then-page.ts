// Something is deleted first, then a page is read.
await store_delete_record({ id: "99" });
const page = await web_fetch_page({ url: "https://reviews.example" });
return page.title;
