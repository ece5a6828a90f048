// The page's words overwrite a record.
const page = await web_fetch_page({ url: "https://reviews.example" });
await store_update_record({ id: "4711", fields: { remark: page.text } });
