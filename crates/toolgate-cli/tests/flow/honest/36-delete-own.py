# What the script names is deleted.
await store_delete_record(id="4711")
