// Makes random tokens and says what jose finds wrong with each.
//
//     node tokens.mjs <folder of jose> <count> <seed> <now>
//
// Prints what tokens.py prints.

import { createHmac, generateKeyPairSync, randomBytes, sign as signRaw } from "node:crypto";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { readFileSync } from "node:fs";

const [folder, ...numbers] = process.argv.slice(2);
const [count, seed, now] = numbers.map(Number);
const main = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")).main;
const jose = await import(pathToFileURL(join(folder, main)));

const audience = ["us", "also-us"];
const issuer = "https://issuer";
const leeway = 30;

let state = seed >>> 0;
/** Below 1 (mulberry32). */
function chance() {
  state = (state + 0x6d2b79f5) >>> 0;
  let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
}
const below = (end) => Math.floor(chance() * end);
const one = (choices) => choices[below(choices.length)];
const sometimes = (share) => chance() < share;
const encode = (bytes) => Buffer.from(bytes).toString("base64url");

const secret = randomBytes(48);
const pairs = {};
for (const name of ["one", "two", "stranger"]) pairs[name] = generateKeyPairSync("rsa", { modulusLength: 2048 });
pairs.weak = generateKeyPairSync("rsa", { modulusLength: 1024 });
const published = async (name, more) => ({ ...(await jose.exportJWK(pairs[name].publicKey)), kid: name, ...more });
const keys = [
  await published("one", { use: "sig", alg: "RS256" }),
  await published("two", {}),
  await published("weak", {}),
  await published("stranger", { kid: "sealing", use: "enc" }),
  await published("stranger", { kid: "other", alg: "RS512" }),
];
const set = jose.createLocalJWKSet({ keys });

/** Mostly good ones: each is wrong now and then. */
function claims() {
  const made = { sub: "ada", exp: now + one([1, 2, 60, 3600]), iss: issuer, aud: one(["us", ["also-us"], ["them", "us"]]) };
  if (sometimes(0.5)) made.nbf = now + one([-3600, -1, 0, 1, 29, 30]);
  if (sometimes(0.5)) made.iat = now - one([3600, 1, 0]);
  const wrong = [
    () => (made.exp = now - one([0, 1, 29, 30, 31, 3600, now])),
    () => (made.exp = now + one([-0.5, -31.5, 0.5, 60.5])),
    () => (made.exp = one(["soon", String(now + 60), null, true, [now + 60]])),
    () => (made.nbf = now + one([31, 32, 30.5, 3600])),
    () => (made.nbf = one(["soon", String(now), true])),
    () => (made.iat = one(["soon", String(now), true])),
    () => (made.iss = one(["https://issuer/", "https://evil", "HTTPS://issuer"])),
    () => delete made.iss,
    () => (made.aud = one(["them", ["them"], [], "US", "us,also-us"])),
    () => delete made.aud,
    () => delete made.sub,
    () => delete made.exp,
  ];
  for (let times = one([0, 0, 1, 1, 2]); times > 0; times -= 1) one(wrong)();
  return made;
}

async function signed(made) {
  const header = {};
  if (sometimes(0.3)) header.typ = one(["JWT", "jwt", "at+jwt", "application/at+jwt"]);
  if (sometimes(0.5)) {
    if (sometimes(0.3)) header.kid = "any";
    header.alg = one(["HS256", "HS256", "HS256", "HS256", "HS256", "HS384", "HS512", "none"]);
    if (header.alg === "none") return `${encode(JSON.stringify(header))}.${encode(JSON.stringify(made))}.`;
    const key = sometimes(0.85) ? secret : one([secret.subarray(1), Buffer.concat([secret, Buffer.alloc(1)]), randomBytes(64)]);
    return sign(header, made, { HS256: key, HS384: key, HS512: Buffer.concat([key, key]) }[header.alg]);
  }
  const named = one(["one", "one", "two", "two", "weak", "sealing", "other", "three", undefined]);
  const signer = { sealing: "stranger", other: "stranger", three: "one" }[named] ?? named ?? "one";
  header.alg = one(["RS256", "RS256", "RS256", "RS256", "RS256", "RS384", "PS256"]);
  if (named !== undefined) header.kid = named;
  return sign(header, made, pairs[sometimes(0.85) ? signer : one(Object.keys(pairs))].privateKey);
}

/** By the library, except with a key that it refuses. */
async function sign(header, made, key) {
  if (key.asymmetricKeyDetails?.modulusLength !== 1024) {
    return new jose.CompactSign(Buffer.from(JSON.stringify(made))).setProtectedHeader(header).sign(key);
  }
  const text = `${encode(JSON.stringify(header))}.${encode(JSON.stringify(made))}`;
  return `${text}.${encode(signRaw("sha256", text, key))}`;
}

/** Signed with a public key as if it were the secret. */
function confused(made) {
  const text = `${encode('{"alg":"HS256","kid":"one"}')}.${encode(JSON.stringify(made))}`;
  const spki = (format) => pairs.one.publicKey.export({ type: "spki", format });
  const key = one([spki("pem"), spki("der"), keys[0].n, Buffer.from(keys[0].n, "base64url"), JSON.stringify(keys[0]), ""]);
  return `${text}.${encode(createHmac("sha256", key).update(text).digest())}`;
}

/** A bit, a part or an end is not what it was. */
async function damaged(token) {
  const parts = token.split(".");
  const place = below(3);
  if (parts[place] === "") return `${token}.`;
  let bytes = Buffer.from(parts[place], "base64url");
  switch (below(6)) {
    case 0:
      bytes[below(bytes.length)] ^= 1 << below(8);
      break;
    case 1:
      bytes = bytes.subarray(0, below(bytes.length));
      break;
    case 2:
      bytes = Buffer.concat([bytes, randomBytes(1 + below(8))]);
      break;
    case 3:
      return (sometimes(0.5) ? parts.slice(0, 2) : [...parts, "AAAA"]).join(".");
    case 4:
      return [parts[0], parts[1], ""].join(".");
    default:
      parts[place] = (await signed(claims())).split(".")[place];
      return parts.join(".");
  }
  parts[place] = encode(bytes);
  return parts.join(".");
}

async function finds(token, options) {
  const key = (header, parts) => (header.alg === "HS256" ? secret : set(header, parts));
  try {
    await jose.jwtVerify(token, key, { algorithms: ["RS256", "HS256"], ...options });
  } catch (error) {
    if (!(error instanceof jose.errors.JOSEError) && !(error instanceof TypeError)) throw error;
    return error;
  }
  return undefined;
}

async function flaws(token) {
  // Far from every time in the claims but the token's end, which is looked at last.
  const error = await finds(token, { currentDate: new Date(0), clockTolerance: 2 ** 40 });
  if (error?.code === "ERR_JOSE_ALG_NOT_ALLOWED") return ["algorithm"];
  if (error?.code === "ERR_JWT_CLAIM_VALIDATION_FAILED") return ["claims"];
  if (error !== undefined) return ["invalid"];
  const found = new Set();
  // The library has one tolerance for the beginning and the end: the end is looked at from as much later.
  for (const [flaw, options] of [
    ["claims", { requiredClaims: ["sub", "exp"], clockTolerance: 2 ** 40 }],
    ["issuer", { issuer, clockTolerance: 2 ** 40 }],
    ["audience", { audience, clockTolerance: 2 ** 40 }],
    ["early", { clockTolerance: leeway }],
    ["expired", { clockTolerance: leeway, at: now + leeway }],
  ]) {
    const { at = now, ...rest } = options;
    const refused = await finds(token, { currentDate: new Date(at * 1000), ...rest });
    if (refused === undefined) continue;
    if (refused.code === "ERR_JWT_EXPIRED") {
      if (flaw === "expired") found.add("expired");
    } else if (flaw !== "expired") {
      found.add(flaw);
    }
  }
  return [...found];
}

console.log(JSON.stringify({ secret: encode(secret), keys }));
for (let made = 0; made < count; made += 1) {
  const kind = chance();
  let token = kind < 0.05 ? confused(claims()) : await signed(claims());
  if (kind > 0.8) token = await damaged(token);
  console.log(JSON.stringify({ token, flaws: await flaws(token) }));
}
