# What the script names is deleted, after a page was read for another reason.
page = await web_fetch_page(url="https://reviews.example")
await notes_write(text=page["title"])
await store_delete_record(id="1234")
