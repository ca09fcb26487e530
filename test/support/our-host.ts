/** The address of the servers that tests start. `TEST_HOST` names another one if services in other network namespaces ask them. */
export const OUR_HOST = Bun.env.TEST_HOST ?? "127.0.0.1";
