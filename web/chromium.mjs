// How the tests start the system's Chromium. CHROMIUM: the browser.
export const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";

// Without a sandbox, because tests run as root; without anything that asks the network of its own accord.
export const options = {
  executablePath,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
};
