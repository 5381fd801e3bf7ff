// What does not run in Firefox, each with its reason. All other tests of the page run in both browsers.

/// Whole files.
export const FILES = {
  "goldens.test.mjs": "the pictures are of Chromium",
};

/// Tests by name: `chromiumOnly` of harness.mjs.
export const TESTS = {
  "it can be installed from any path, with a handler for traces": "Firefox installs no pages",
  "a disk that is really full is said": "WebDriver BiDi has no way to set a quota",
  "forced colours: pictures have the system's ground and ink, and hues with edges and patterns": "WebDriver BiDi cannot force colours",
  "on paper there is the view, and nothing that is only for a screen": "WebDriver BiDi shows no page as on paper",
  "no byte leaves from the worker that the app starts": "WebDriver BiDi runs no script in a worker; the same program is tried in a worker of the test",
  "no byte leaves from the programs that a memory snapshot starts": "WebDriver BiDi runs no script in a worker; the same ways are tried in a worker of the test",
  "no byte leaves from the programs that a trace starts": "WebDriver BiDi runs no script in a worker; the same ways are tried in a worker of the test",
  "the policy does not hold the service worker": "WebDriver BiDi runs no script in a service worker",
  "ten traces opened and removed with the timeline shown leave no memory behind": "memory is asked of Chromium's processes",
};
