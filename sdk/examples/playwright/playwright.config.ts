import { defineConfig } from "@playwright/test";

export default defineConfig({
  reporter: "line",
  // A browser of the system, if it is set; else the one that `playwright install chromium` has fetched.
  use: { launchOptions: { executablePath: process.env.CHROMIUM_PATH } },
});
