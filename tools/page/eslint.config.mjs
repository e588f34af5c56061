// What the type check does not see. The rules are named one by one, so that eslint itself is all that is needed.
const parsesHtml = ["innerHTML", "outerHTML", "insertAdjacentHTML", "write", "srcdoc"].map((property) => ({
  property,
  message: "Text of users would become HTML. Use h() of dom.js.",
}));

export default [
  {
    files: ["**/*.js"],
    languageOptions: { ecmaVersion: 2023, sourceType: "module" },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "array-callback-return": "error",
      complexity: ["error", 15],
      eqeqeq: "error",
      "no-cond-assign": "error",
      "no-constant-binary-expression": "error",
      "no-constant-condition": "error",
      "no-control-regex": "error",
      "no-empty": "error",
      "no-eval": "error",
      "no-fallthrough": "error",
      "no-implied-eval": "error",
      "no-loss-of-precision": "error",
      "no-misleading-character-class": "error",
      "no-restricted-properties": ["error", ...parsesHtml],
      "no-self-assign": "error",
      "no-self-compare": "error",
      "no-shadow-restricted-names": "error",
      "no-sparse-arrays": "error",
      "no-unmodified-loop-condition": "error",
      "no-unreachable-loop": "error",
      "no-unsafe-finally": "error",
      "no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
      "no-useless-catch": "error",
      "no-useless-escape": "error",
      "no-var": "error",
      "prefer-const": "error",
    },
  },
];
