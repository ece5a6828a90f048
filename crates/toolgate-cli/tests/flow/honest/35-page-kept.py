# A page is kept.
page = await web_fetch_page(url="https://reviews.example")
await notes_write(text=page["text"])
