// The page of who runs the test keeps itself up to date.
const EVERY_MS = 5000;

async function refresh() {
  try {
    const answer = await fetch("", { cache: "no-store" });
    if (!answer.ok) throw new Error(`the server says ${answer.status}`);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    document.querySelector("#panel").replaceWith(page.querySelector("#panel"));
    document.querySelector("#message").textContent = "";
  } catch (error) {
    document.querySelector("#message").textContent = `What is shown may be old: ${error.message}.`;
  }
}

setInterval(refresh, EVERY_MS);
