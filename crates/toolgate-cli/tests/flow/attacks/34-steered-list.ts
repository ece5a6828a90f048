// All that a search finds is deleted.
const { hits } = await web_search({ query: "old records" });
for (const hit of hits) await store_delete_record({ id: hit.record });
