# Private data stays inside.
customer = await crm_get_customer(id="7")
await notes_write(text=customer["note"])
