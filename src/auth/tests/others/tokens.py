"""Makes random tokens and says what PyJWT finds wrong with each.

    tokens.py <count> <seed> <now>

The first line names the keys; each further one is a token with its flaws, in no order:
algorithm, invalid (signature, key, shape), claims (a claim missing or of another type), issuer, audience, early, expired.
"""

import base64
import hashlib
import hmac
import json
import random
import sys
from datetime import datetime

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

COUNT, SEED, NOW = (int(word) for word in sys.argv[1:4])
AUDIENCE, ISSUER, LEEWAY = ["us", "also-us"], "https://issuer", 30
chance = random.Random(SEED)


class Standing(datetime):
    """The library asks the machine's clock; here it stands."""

    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(NOW, tz)


jwt.api_jwt.datetime = Standing


def encode(raw):
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decode(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


SECRET = chance.randbytes(48)
PAIRS = {name: rsa.generate_private_key(public_exponent=65537, key_size=2048) for name in ["one", "two", "stranger"]}
KEYS = []
for name in ["one", "two"]:
    key = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(PAIRS[name].public_key()))
    KEYS.append({"kty": "RSA", "kid": name, "n": key["n"], "e": key["e"]})
SET = {key["kid"]: jwt.PyJWK(key, algorithm="RS256") for key in KEYS}


def sometimes(share):
    return chance.random() < share


def claims():
    """Mostly good ones: each is wrong now and then."""
    made = {
        "sub": "ada",
        "exp": NOW + chance.choice([1, 2, 60, 3600]),
        "iss": ISSUER,
        "aud": chance.choice(["us", "also-us", ["us"], ["them", "us"]]),
    }
    if sometimes(0.5):
        made["nbf"] = NOW + chance.choice([-3600, -1, 0, 1, 29, 30])
    if sometimes(0.5):
        made["iat"] = NOW + chance.choice([-3600, -1, 0, 1, 29, 30])
    wrong = [
        lambda: made.update(exp=NOW - chance.choice([0, 1, 29, 30, 31, 3600, NOW])),
        lambda: made.update(exp=NOW + chance.choice([-1.5, -31.5, 1.5, 60.5])),
        lambda: made.update(nbf=NOW + chance.choice([31, 32, 3600])),
        lambda: made.update(iat=NOW + chance.choice([31, 32, 3600])),
        lambda: made.update(iss=chance.choice(["https://issuer/", "https://evil", "HTTPS://issuer"])),
        lambda: made.pop("iss", None),
        lambda: made.update(aud=chance.choice(["them", ["them"], [], "", "US", "us,also-us"])),
        lambda: made.pop("aud", None),
        lambda: made.pop("sub", None),
        lambda: made.update(sub=chance.choice([1, ["ada"], True])),
        lambda: made.pop("exp", None),
        lambda: made.update(exp="soon"),
        lambda: made.update(nbf="soon"),
    ]
    for _ in range(chance.choice([0, 0, 1, 1, 2])):
        chance.choice(wrong)()
    return made


def signed(made):
    """A token by the library, of an algorithm that is allowed or is not."""
    header = {}
    if sometimes(0.3):
        header["typ"] = chance.choice(["JWT", "at+jwt"])
    if sometimes(0.5):
        if sometimes(0.3):
            header["kid"] = "any"
        algorithm = chance.choice(["HS256"] * 6 + ["HS384", "HS512", "none"])
        secret = SECRET if sometimes(0.85) else chance.choice([SECRET[:-1], SECRET + b"\0", chance.randbytes(48)])
        return jwt.encode(made, None if algorithm == "none" else secret, algorithm, header)
    named = chance.choice(["one", "two"])
    signer = named if sometimes(0.85) else chance.choice(["one", "two", "stranger"])
    header["kid"] = named if sometimes(0.9) else chance.choice(["three", "One"])
    if sometimes(0.05):
        del header["kid"]
    algorithm = chance.choice(["RS256"] * 8 + ["RS384", "RS512", "PS256"])
    return jwt.encode(made, PAIRS[signer], algorithm, header)


def confused(made):
    """Signed with a public key as if it were the secret."""
    public = PAIRS["one"].public_key()
    forms = serialization.PublicFormat
    secret = chance.choice(
        [
            public.public_bytes(serialization.Encoding.PEM, forms.SubjectPublicKeyInfo),
            public.public_bytes(serialization.Encoding.DER, forms.SubjectPublicKeyInfo),
            KEYS[0]["n"].encode(),
            decode(KEYS[0]["n"]),
            json.dumps(KEYS[0]).encode(),
        ]
    )
    header = {"alg": "HS256", "kid": "one"}
    text = f"{encode(json.dumps(header).encode())}.{encode(json.dumps(made).encode())}"
    return f"{text}.{encode(hmac.digest(secret, text.encode(), hashlib.sha256))}"


# DER of DigestInfo up to the digest: SHA-256 (RFC 8017, 9.2), and others that are not it.
DIGEST_INFO = bytes.fromhex("3031300d060960864801650304020105000420")
WITHOUT_NULL = bytes.fromhex("302f300b0609608648016503040201" "0420")
LONG_FORM = bytes.fromhex("30813130" "0d060960864801650304020105000420")
OF_SHA384 = bytes.fromhex("3031300d060960864801650304020205000420")
OF_SHA1 = bytes.fromhex("3021300906052b0e03021a05000414")


def mispadded(made):
    """Signed with the right key, but what was signed is padded as PKCS #1 1.5 does not."""
    header = {"alg": "RS256", "kid": "one"}
    text = f"{encode(json.dumps(header).encode())}.{encode(json.dumps(made).encode())}"
    digest = hashlib.sha256(text.encode()).digest()
    numbers = PAIRS["one"].private_numbers()
    n, size = numbers.public_numbers.n, 256
    good = DIGEST_INFO + digest

    def filled(tail, head=b"\x00\x01", fill=b"\xff", end=b"\x00"):
        return head + fill * (size - len(head) - len(end) - len(tail)) + end + tail

    blocks = [
        # As it should be: the others are refused for what is different in them.
        *[filled(good)] * 4,
        filled(good, head=b"\x00\x02"),
        filled(good, head=b"\x00\x00", fill=b"\x00"),
        filled(good, head=b"\x01\x01"),
        filled(good, fill=b"\x00"),
        filled(good, fill=b"\xfe"),
        filled(good, end=b"\xff"),
        filled(good, end=b"\x00\x00"),
        # Room for whatever makes a cube root (Bleichenbacher).
        b"\x00\x01\xff\x00" + good + bytes(size - 4 - len(good)),
        b"\x00\x01" + b"\xff" * 8 + b"\x00" + good + chance.randbytes(size - 11 - len(good)),
        filled(good + b"\x00"),
        filled(good[:-1]),
        filled(digest),
        filled(WITHOUT_NULL + digest),
        filled(LONG_FORM + digest),
        filled(OF_SHA384 + digest),
        filled(OF_SHA1 + hashlib.sha1(text.encode()).digest()),
        filled(DIGEST_INFO + bytes(32)),
        filled(DIGEST_INFO + digest[::-1]),
        bytes(size - len(good)) + good,
    ]
    def powered(block):
        return pow(int.from_bytes(block, "big") % n, numbers.d, n)

    sealed = powered(chance.choice(blocks)).to_bytes(size, "big")
    if sometimes(0.2):
        right = powered(filled(good))
        # The same number in other words, and numbers that are none.
        words = [(right, size + 1), (right + n, size + 1), (0, size), (n - 1, size), (n, size)]
        sealed = chance.choice([number.to_bytes(length, "big") for number, length in words])
    return f"{text}.{encode(sealed)}"


def damaged(token):
    """A bit, a part or an end is not what it was."""
    parts = token.split(".")
    place = chance.randrange(3)
    if not parts[place]:
        return token + "."
    raw = bytearray(decode(parts[place]))
    change = chance.randrange(6)
    if change == 0:
        raw[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)
    elif change == 1:
        del raw[chance.randrange(len(raw)) :]
    elif change == 2:
        raw += chance.randbytes(chance.randrange(1, 9))
    elif change == 3:
        return ".".join(parts[:2] if sometimes(0.5) else parts + ["AAAA"])
    elif change == 4:
        return ".".join([*parts[:2], ""])
    else:
        other = signed(claims()).split(".")
        parts[place] = other[place]
        return ".".join(parts)
    parts[place] = encode(bytes(raw))
    return ".".join(parts)


def key_of(token):
    """The key that the token's header asks for, as a caller of the library has to choose it."""
    header = jwt.get_unverified_header(token)
    if header.get("alg") == "HS256":
        return SECRET, ["HS256"]
    if header.get("alg") == "RS256":
        key = SET.get(header.get("kid"))
        if key is None:
            raise jwt.InvalidTokenError("no such key")
        return key, ["RS256"]
    if not isinstance(header.get("alg"), str):
        raise jwt.InvalidTokenError("no algorithm")
    raise jwt.InvalidAlgorithmError("not allowed")


def finds(token, key, algorithms, leeway=0, require=(), **checks):
    """The library's verdict when it looks at the signature and at nothing but these."""
    options = {f"verify_{name}": False for name in ["exp", "nbf", "iat", "aud", "iss", "sub", "jti"]}
    options |= {f"verify_{name}": True for name in checks}
    options["require"] = list(require)
    given = {"audience": AUDIENCE} if "aud" in checks else {}
    given |= {"issuer": ISSUER} if "iss" in checks else {}
    try:
        jwt.decode(token, key, algorithms, options=options, leeway=leeway, **given)
    except jwt.PyJWTError as error:
        return error
    return None


def flaws(token):
    try:
        key, algorithms = key_of(token)
    except jwt.InvalidAlgorithmError:
        return ["algorithm"]
    except jwt.PyJWTError:
        return ["invalid"]
    error = finds(token, key, algorithms)
    if isinstance(error, jwt.InvalidAlgorithmError):
        return ["algorithm"]
    if error:
        return ["invalid"]
    found = []
    if finds(token, key, algorithms, require=["sub", "exp"], sub=True):
        found.append("claims")
    for flaw, checks, leeway in [
        ("issuer", {"iss": True}, 0),
        ("audience", {"aud": True}, 0),
        ("early", {"nbf": True, "iat": True}, LEEWAY),
        ("expired", {"exp": True}, 0),
    ]:
        error = finds(token, key, algorithms, leeway, **checks)
        if isinstance(error, jwt.DecodeError):
            found.append("claims")
        elif error:
            found.append(flaw)
    return found


print(json.dumps({"secret": encode(SECRET), "keys": KEYS}))
for _ in range(COUNT):
    kind = chance.random()
    text = confused(claims()) if kind < 0.05 else mispadded(claims()) if kind < 0.15 else signed(claims())
    if kind > 0.8:
        text = damaged(text)
    print(json.dumps({"token": text, "flaws": flaws(text)}))
