/** Whether `host` names this machine, by name or by address. */
export function isLoopback(host: string): boolean {
  return /^(localhost|\[?::1\]?|127(\.\d{1,3}){3})$/i.test(host);
}

/** Whether requests to `url` leave the machine. An invalid URL counts as one that does. */
export function leavesMachine(url: string): boolean {
  return !isLoopback(URL.parse(url)?.hostname ?? "");
}
