# The page says what to delete.
page = await web_fetch_page(url="https://reviews.example")
await store_delete_record(id=page["record"])
