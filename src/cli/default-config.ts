// Where commands look for the configuration when they are not told.

export const defaultConfig = "/etc/tagferry/tagferry.yaml";
