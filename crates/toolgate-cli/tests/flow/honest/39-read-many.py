# Reads alone.
customer = await crm_get_customer(id="7")
listed = await crm_list_deals()
print(customer["name"], len(listed["deals"]))
