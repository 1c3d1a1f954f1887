// The state in the address: `#/shapes?op=8,1,6,1&op=7,1,5&rule=pdpd:1&set=N:4`.

/** What the address says: the view, and its fields, each a list of texts. */
export function read(fragment) {
  const text = fragment.replace(/^#\/?/, "");
  const [view, query = ""] = text.split(/\?(.*)/s);
  return { view, fields: new URLSearchParams(query) };
}

/** Signs that need no escape in a fragment stay readable. */
export function written(view, pairs) {
  const escaped = (text) =>
    encodeURIComponent(text).replace(/%(2C|3A|28|29|3D|40|5B|5D|2F|3F|2A|3B)/g, (code) => decodeURIComponent(code));
  const query = pairs.map(([key, value]) => `${key}=${escaped(value)}`).join("&");
  return `#/${view}${query ? `?${query}` : ""}`;
}

let last = "";
/** Shows the state in the address, without a step in the history. */
export function remember(view, pairs) {
  const fragment = written(view, pairs);
  last = fragment;
  history.replaceState(null, "", fragment);
}

/** Whether the address is what this page wrote itself. */
export const isOwn = () => location.hash === last;
