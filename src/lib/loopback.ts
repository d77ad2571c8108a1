// Addresses that lead to this machine itself.

/** Whether `host`, as it stands in an address, is this machine by its name or its number. */
export function isLoopback(host: string): boolean {
  return /^(localhost|\[?::1\]?|127(\.\d{1,3}){3})$/i.test(host);
}

/** Whether what is sent to `url` leaves the machine. An address that cannot be read does. */
export function leavesMachine(url: string): boolean {
  return !isLoopback(URL.parse(url)?.hostname ?? "");
}
