// The page chooses by being there; what is deleted is in the script.
const page = await web_fetch_page({ url: "https://reviews.example" });
if (page.text.includes("delete")) await store_delete_record({ id: "4711" });
