# One's own records are looked at and updated.
listed = await store_list_records()
for record in listed["records"]:
    await store_update_record(id=record["id"], fields={"seen": True})
