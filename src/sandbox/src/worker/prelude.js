// Runs before any code of a user, in each context. It takes away what would make the same input give another result,
// and answers what decides whether a value is JSON.
(log) => {
  "use strict";
  const Real = Date, reflect = Reflect.construct, stringify = JSON.stringify, text = String;
  const MapOf = Map, SetOf = Set, finite = Number.isFinite;
  const none = (what) => { throw new TypeError(`code has no ${what}, so that the same input gives the same result; pass one in its arguments`); };
  function OnlyGiven(...parts) {
    if (!new.target || parts.length === 0) none("clock");
    return reflect(Real, parts, new.target === OnlyGiven ? Real : new.target);
  }
  OnlyGiven.prototype = Real.prototype;
  OnlyGiven.parse = Real.parse;
  OnlyGiven.UTC = Real.UTC;
  OnlyGiven.now = () => none("clock");
  Object.defineProperty(OnlyGiven, "name", { value: "Date" });
  Object.defineProperty(Real.prototype, "constructor", { value: OnlyGiven, writable: true, configurable: true });
  globalThis.Date = OnlyGiven;
  Math.random = () => none("randomness");
  const shown = (value) => {
    if (typeof value === "string") return value;
    if (typeof value === "object" && value !== null) {
      try { return stringify(value) ?? text(value); } catch { return text(value); }
    }
    return text(value);
  };
  const write = (...parts) => {
    let line = "";
    for (let i = 0; i < parts.length; i += 1) line += (i ? " " : "") + shown(parts[i]);
    log(line + "\n");
  };
  globalThis.console = { log: write, info: write, warn: write, error: write, debug: write };
  const refuse = (key, what) => {
    throw new TypeError(`what it returned is not JSON: ${key === "" ? "" : `'${key}' is `}${what}`);
  };
  return (key, value) => {
    switch (typeof value) {
      case "number": if (!finite(value)) refuse(key, `${value}, which is not a number in JSON`); break;
      case "bigint": refuse(key, "a BigInt; make a Number or a String of it"); break;
      case "function": refuse(key, "a function"); break;
      case "symbol": refuse(key, "a symbol"); break;
      case "object":
        if (value instanceof MapOf) refuse(key, "a Map; Object.fromEntries(…) makes an object of it");
        if (value instanceof SetOf) refuse(key, "a Set; [...set] makes a list of it");
    }
    return value;
  };
}
