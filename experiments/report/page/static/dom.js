// Everything that the page adds is made here, as elements and text: no markup out of data.

function make(tag, attributes, ...content) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "on") {
      for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...content.flat(3).filter((part) => part !== null && part !== undefined && part !== ""));
  return element;
}

function score(value, digits = 3) {
  if (value === null || value === undefined) return "-";
  return value.toFixed(digits).replace(/^(-?)0\./, "$1.");
}

function moment(time) {
  return time.replace("T", " ").slice(0, 16);
}

function spent(cost) {
  if (!cost) return "";
  const [calls, tokens, dollars, seconds] = cost;
  const parts = [`${calls} ${calls === 1 ? "call" : "calls"}`, `${tokens.toLocaleString("en")} tokens`];
  if (dollars === null) parts.push("price unknown");
  else if (dollars > 0) parts.push(`$${dollars.toFixed(4)}`);
  if (seconds > 0) parts.push(`${seconds.toFixed(1)} s`);
  return parts.join(", ");
}

function announce(text) {
  document.getElementById("said").textContent = text;
}
