// A call that fails is made again.
for (let attempt = 0; attempt < 2; attempt++) {
  try {
    await notes_write({ text: "try" });
    break;
  } catch (error) {
    console.log(String(error));
  }
}
