#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes t/golden/tokenizers/steps.jsonl: each step of a tokenizer.json, with each of its
options, and what Hugging Face's tokenizers (0.23.3) make of texts that it matters for.

    python3 t/golden/make_steps.py

The first lines are [name, model]. The others are
[what it is, model's name, the rest of the tokenizer.json, rows], and a row is
[text, ids, decoded], behind which may stand the ids of the text where special tokens in
it are text; or the ids with what stands around it, and ids and types of the text and
"b a" with what stands around them. A row [ids, decoded] is of decoding alone. The last
lines, [what it is, a SentencePiece model in base64, rows], are sentencepiece's (0.2.3)."""
import base64
import itertools
import json
import os

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Tokenizer

OUT = os.path.join(os.path.dirname(__file__), "tokenizers", "steps.jsonl")

# Texts for normalizers: controls, Chinese signs, letters that are composed or not, that
# have compatible ones, whose small letter is two characters, spaces of all kinds.
RAW = [" a B  ", "a\t\r\n\x00\x01\x7fb", "中a㐀b\U00020000c豈", "éÅ e\u0301\u0323A\u030a",
       "ﬁ²½㎏ｱ", "İIßẞΣς", "\u00a0\u3000\u2028\u180ea\u200b\u00ad\ufffd", "각\u1112\u1161\u11ab",
       "aab aaab", "", "\u2003", "龥鿿仿\u4dbf\U0002a6df\U0002fa1f"]
# For what parts a text into words.
WORDS = ["ab  b,a", " a b ", "it's a12 b3.", "a_b-a b\n\na", "a\u00a0b\u3000a", "a。b¡a",
         "aba", "_a _b", "1²½३", "a\t\nb ", "", " ", "ab_", "¿", "a'll b'd  a", "aéb éé"]
MARKS = ["a<m>b", "a <m> b", " <m>  <m> ", "<m>", "a_<m>", "<m>_a", "é<m>", "<m>é", "A<M>b",
         "<m><n>b", "a \u3000<m>\u00a0 b", "<<m>>", "<n>a <n>", "a<m", "b<m> <n>"]


def suffixed():
    """Characters, and each with the mark of a word's end: ids tell where words end."""
    letters = sorted(set("".join(WORDS + MARKS)) - {" "}) + [" "]
    vocab = {"[UNK]": 0}
    for c in letters:
        vocab[c] = len(vocab)
        vocab[c + "</w>"] = len(vocab)
    return {"type": "BPE", "unk_token": "[UNK]", "end_of_word_suffix": "</w>",
            "vocab": vocab, "merges": []}


def byte_chars():
    shown = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174]
    others = [b for b in range(256) if b not in shown]
    return {b: chr(b) for b in shown} | {b: chr(256 + i) for i, b in enumerate(others)}


def byte_level():
    vocab = {c: b for b, c in byte_chars().items()}
    for pair in ["ab", "Ġa", "Ġb", "Ġab", "aba"]:
        vocab[pair] = len(vocab)
    return {"type": "BPE", "vocab": vocab,
            "merges": [["a", "b"], ["Ġ", "a"], ["Ġ", "b"], ["Ġ", "ab"], ["ab", "a"]]}


def marked_bytes():
    """Of bytes as characters, too, with the mark of a word's end."""
    vocab = {}
    for b, c in sorted(byte_chars().items()):
        vocab[c] = len(vocab)
        vocab[c + "<"] = len(vocab)
    return {"type": "BPE", "end_of_word_suffix": "<", "vocab": vocab, "merges": []}


def of(kind, tokens, **more):
    return {"type": kind, "vocab": {t: i for i, t in enumerate(tokens)}, **more}


PARTS = ["[UNK]", "a", "b", "ab", "##a", "##b", "##ab", "##", "é", "##é", "aé", "##abé"]
JOINED = ["a", "##b", "##", "b</w>", "</w>a</w>", "▁a", "▁", "a▁▁b", "<0x41>", "<0xc3>",
          "<0xA9>", "<0x4>", "<0xzz>", " .", "?", " ?", "n't", " n't", " 'm", " do not",
          " 's", " 've", " 're", "xxaxx", "xx", "_a", " ' ", " !", " ,", "##do not", "xa",
          " 'm .", "<0x0a>", "<0xFf>", "a b"]
MODELS = {
    "bytes": {"type": "BPE", "byte_fallback": True, "merges": [],
              "vocab": {"<0x%02X>" % b: b for b in range(256)}},
    "suffixed": suffixed(),
    "byte_level": byte_level(),
    "marked_bytes": marked_bytes(),
    "joined": of("BPE", JOINED, merges=[]),
    "pieces": of("WordPiece", PARTS, unk_token="[UNK]", max_input_chars_per_word=5,
                 continuing_subword_prefix="##"),
    "short_pieces": of("WordPiece", PARTS, unk_token="[UNK]", max_input_chars_per_word=2,
                       continuing_subword_prefix="##"),
    "at_pieces": of("WordPiece", ["[UNK]", "a", "b", "@a", "@b", "@"], unk_token="[UNK]",
                    max_input_chars_per_word=100, continuing_subword_prefix="@"),
    "merges": of("BPE", ["a", "b", "é", "ab", "ba", "aa", "aab", "?"], unk_token="?",
                 merges=["a a", "a b", "b a", "aa b"]),
    "fused": of("BPE", ["a", "b", "?", "ab"], unk_token="?", fuse_unk=True, merges=["a b"]),
    "no_unknown": of("BPE", ["a", "b", "ab"], merges=[["a", "b"]]),
    "whole_bytes": {**byte_level(), "ignore_merges": True, "vocab":
                    {**byte_level()["vocab"], "Ã©": 300, "Ġbb": 301, "bab": 302}},
    "some_bytes": of("BPE", ["a", "?"] + ["<0x%02X>" % b for b in range(255)], merges=[],
                     unk_token="?", byte_fallback=True),
    "whole": of("BPE", ["a", "b", "ab", "aba", "bb", "?"], merges=[["b", "a"]][:0],
                unk_token="?", ignore_merges=True),
    "prefixed": of("BPE", ["a", "b", "#a", "#b", "ab", "?"], merges=[["a", "#b"]],
                   unk_token="?", continuing_subword_prefix="#"),
    "unigram": {"type": "Unigram", "unk_id": 0,
                "vocab": [["?", 0], ["a", -2], ["b", -2.5], ["ab", -4], ["ba", -3],
                          ["aba", -5.5], ["▁", -1], ["▁a", -2.5]]},
    "positive": {"type": "Unigram", "unk_id": 2,
                 "vocab": [["a", 12], ["bb", 25], ["?", 14], ["ab", 26]]},
    "unigram_bytes": {"type": "Unigram", "unk_id": 0, "byte_fallback": True,
                      "vocab": [["?", 0], ["a", -2]] +
                      [["<0x%02X>" % b, -9] for b in range(256)]},
}


def sequence(kind, steps):
    return {"type": "Sequence", kind: steps}


def normalizers():
    for clean, chinese, lower in itertools.product([True, False], repeat=3):
        for accents in [None, True, False]:
            if (clean, chinese) in [(True, True), (False, False)] or accents is None:
                yield {"type": "BertNormalizer", "clean_text": clean,
                       "handle_chinese_chars": chinese, "strip_accents": accents,
                       "lowercase": lower}
    for form in ["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents"]:
        yield {"type": form}
    yield sequence("normalizers", [{"type": "NFKD"}, {"type": "StripAccents"},
                                   {"type": "Lowercase"}])
    for left, right in itertools.product([True, False], repeat=2):
        yield {"type": "Strip", "strip_left": left, "strip_right": right}
    yield {"type": "Prepend", "prepend": "éx"}
    for pattern, content in [({"String": "a"}, "bé"), ({"String": "a."}, "x"),
                             ({"Regex": "a+"}, ""), ({"Regex": r"[\s\x{00c5}]"}, "_"),
                             ({"Regex": r"^\S"}, "x"), ({"Regex": r"\S$"}, "x"),
                             ({"Regex": r"[^\s]+"}, "w")]:
        yield {"type": "Replace", "pattern": pattern, "content": content}
    yield sequence("normalizers", [{"type": "Replace", "pattern": {"String": "a" * i + "b"},
                                    "content": "b"} for i in range(16, 0, -1)])


def pre_tokenizers():
    for kind in ["BertPreTokenizer", "Whitespace", "WhitespaceSplit"]:
        yield {"type": kind}
    for behavior in ["Isolated", "Removed"]:
        yield {"type": "Punctuation", "behavior": behavior}
        for invert in [True, False]:
            for pattern in [{"String": "a"}, {"Regex": r"\s*b|[\s,]"}, {"Regex": r"(?=b)|a\b"},
                            {"Regex": "(?=é)"}, {"Regex": "(?=[^ab])"}]:
                yield {"type": "Split", "pattern": pattern, "behavior": behavior,
                       "invert": invert}
    for each in [True, False]:
        yield {"type": "Digits", "individual_digits": each}
    yield {"type": "CharDelimiterSplit", "delimiter": "b"}
    for prepend in ["always", "first", "never"]:
        for split in [True, False]:
            yield {"type": "Metaspace", "replacement": "_", "prepend_scheme": prepend,
                   "split": split}
    yield {"type": "Metaspace", "replacement": "_", "add_prefix_space": True}
    yield sequence("pretokenizers", [{"type": "WhitespaceSplit"}, {"type": "Punctuation",
                   "behavior": "Removed"}, {"type": "Digits", "individual_digits": True}])
    yield sequence("pretokenizers", [{"type": "CharDelimiterSplit", "delimiter": c}
                                     for c in "!\"#$%&()*+/:;<=,"])


def decoders():
    yield None
    for cleanup in [True, False]:
        yield {"type": "WordPiece", "prefix": "##", "cleanup": cleanup}
    for prepend in ["always", "first", "never"]:
        yield {"type": "Metaspace", "replacement": "▁", "prepend_scheme": prepend,
               "split": True}
    yield {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True}
    yield {"type": "BPEDecoder", "suffix": "</w>"}
    yield {"type": "Replace", "pattern": {"String": "x"}, "content": "yz"}
    yield {"type": "Replace", "pattern": {"String": "</w>"}, "content": ""}
    yield {"type": "Fuse"}
    yield sequence("decoders", [{"type": "ByteFallback"}, {"type": "Fuse"}])
    for start, stop in [(0, 0), (1, 0), (0, 1), (2, 1), (1, 2), (3, 3)]:
        strip = {"type": "Strip", "content": "x", "start": start, "stop": stop}
        yield strip
        yield sequence("decoders", [{"type": "Fuse"}, strip])
    yield sequence("decoders", [{"type": "Replace", "pattern": {"String": "▁"},
                                 "content": " "}, {"type": "ByteFallback"},
                                {"type": "Fuse"}, {"type": "Strip", "content": " ",
                                                   "start": 1, "stop": 0}])


def frames():
    yield {"type": "BertProcessing", "cls": ["[C]", 1], "sep": ["[S]", 2]}
    yield {"type": "RobertaProcessing", "cls": ["[C]", 1], "sep": ["[S]", 2],
           "trim_offsets": True, "add_prefix_space": False}
    special = {"[C]": {"id": "[C]", "ids": [1], "tokens": ["a"]},
               "[S]": {"id": "[S]", "ids": [2, 5], "tokens": ["b", "é"]}}

    def text(name, kind):
        return {"Sequence": {"id": name, "type_id": kind}}

    def mark(name, kind):
        return {"SpecialToken": {"id": name, "type_id": kind}}
    yield {"type": "TemplateProcessing", "special_tokens": special,
           "single": [mark("[C]", 0), text("A", 0), mark("[S]", 1)],
           "pair": [mark("[C]", 3), text("A", 2), mark("[S]", 1), text("B", 4),
                    mark("[C]", 5), mark("[S]", 6)]}
    yield {"type": "TemplateProcessing", "special_tokens": special,
           "single": [text("A", 0)] + [mark("[C]", 0)] * 15,
           "pair": [mark("[S]", 1)] * 7 + [text("B", 1), text("A", 0)]}
    yield {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False,
           "use_regex": True}
    yield sequence("processors", [
        {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False,
         "use_regex": True},
        {"type": "BertProcessing", "cls": ["[C]", 1], "sep": ["[S]", 2]}])


def added(model, flags):
    n = len(MODELS[model]["vocab"])
    return [{"id": n, "content": "<m>", **flags},
            {"id": n + 1, "content": "<n>", "single_word": False, "lstrip": False,
             "rstrip": False, "normalized": False, "special": True}]


def flags():
    for single, left, right in itertools.product([False, True], repeat=3):
        for normalized, special in [(False, True), (True, False)]:
            yield {"single_word": single, "lstrip": left, "rstrip": right,
                   "normalized": normalized, "special": special}


BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
              "use_regex": True}


def rows_of(tokenizer, texts, frames=False, plain=False):
    for text in texts:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        row = [text, ids, tokenizer.decode(ids, skip_special_tokens=False)]
        if frames:
            pair = tokenizer.encode(text, "b a")
            row += [tokenizer.encode(text).ids, pair.ids, pair.type_ids]
        if plain:
            tokenizer.encode_special_tokens = True
            row.append(tokenizer.encode(text, add_special_tokens=False).ids)
            tokenizer.encode_special_tokens = False
        yield row


# ---- sentencepiece's own files ----

NORMAL, UNKNOWN, CONTROL, USER, BYTE = 1, 2, 3, 4, 6
SPECIAL = [("<unk>", 0, UNKNOWN), ("<s>", 0, CONTROL), ("</s>", 0, CONTROL)]
LETTERS = [("▁", -9, NORMAL), ("a", -10, NORMAL), ("b", -11, NORMAL), ("é", -12.5, NORMAL)]
OF_WORDS = [("▁a", -1, NORMAL), ("ab", -2, NORMAL), ("ba", -2, NORMAL), ("▁ab", -3, NORMAL),
            ("aab", -2, NORMAL), ("▁▁", -4, NORMAL), ("abx", -4.5, NORMAL), ("zq", -60, NORMAL), ("bb", -7, NORMAL)]
ACROSS = [("b▁", -1.5, NORMAL), ("b▁a", -2.25, NORMAL), ("a▁b", -2.5, NORMAL)]
USERS = [("<x>", 0, USER), ("bab", 0, USER), ("▁é", 0, USER)]
BYTES = [("<0x%02X>" % b, 0, BYTE) for b in range(256)]
SPOKEN = ["a", "ab", "aab ab", " a  b ", "bab", "abab", "aba ba", "x", "axb", "xx yx", "abx",
          "é", "aé é", "<x>a<x>", "a <x> b", "<s>a</s>", "", "  ", "▁a", "b a", "b ab a", "ab b a",
          "aaabbb", "bbbb", "中a", "a\tb", "\n", "babab", "a bab", "<0x41>", "abab" * 17,
          "<unk>", "aba" * 12, "x中 中x", "zq azq"]


def pieces():
    sets = {"words": LETTERS + OF_WORDS, "all": LETTERS + OF_WORDS + ACROSS,
            "users": LETTERS + OF_WORDS + USERS, "few": [("a", -1, NORMAL), ("▁a", -3, NORMAL)],
            "bytes": LETTERS + OF_WORDS + BYTES}
    for kind in [1, 2]:
        for name, more in sets.items():
            for prefix, removes, escapes, suffix in [
                    (1, 1, 1, 0), (0, 1, 1, 0), (1, 0, 1, 0), (0, 0, 1, 0), (1, 1, 1, 1),
                    (1, 1, 0, 0), (0, 0, 0, 0)]:
                if name == "bytes" and removes != escapes:
                    continue
                m = sentencepiece_model_pb2.ModelProto()
                for text, score, type_ in SPECIAL + more:
                    m.pieces.add(piece=text, score=score, type=type_)
                m.trainer_spec.model_type = kind
                m.trainer_spec.byte_fallback = name == "bytes"
                m.trainer_spec.treat_whitespace_as_suffix = bool(suffix)
                m.normalizer_spec.add_dummy_prefix = bool(prefix)
                m.normalizer_spec.remove_extra_whitespaces = bool(removes)
                m.normalizer_spec.escape_whitespaces = bool(escapes)
                model = m.SerializeToString()
                s = sentencepiece.SentencePieceProcessor(model_proto=model)
                says = "%s of %s, prefix %d removes %d escapes %d suffix %d" % (
                    "BPE" if kind == 2 else "unigram", name, prefix, removes, escapes, suffix)
                yield [says, base64.b64encode(model).decode(),
                       [[t, s.encode(t), s.decode(s.encode(t))] for t in SPOKEN]]


def decoded(tokenizer, ids):
    """None where the library panics: its Strip takes a token's one letter twice."""
    try:
        return [ids, tokenizer.decode(ids, skip_special_tokens=False)]
    except BaseException as e:
        if type(e).__name__ != "PanicException":
            raise
        return None


def name_of(step):
    """Its type and options, in short."""
    if isinstance(step, list):
        return " ".join(name_of(s) for s in step[:3]) + (" ..." if len(step) > 3 else "")
    if not isinstance(step, dict):
        return json.dumps(step, ensure_ascii=True).strip('"')
    return " ".join(([step["type"]] if "type" in step else []) +
                    ["%s=%s" % (k, name_of(v)) for k, v in step.items()
                     if k not in ("type", "special_tokens", "single", "pair")])


def main():
    out = [[name, model] for name, model in MODELS.items()]

    def put(says, model, rest, texts, frames=False, plain=False, ids=()):
        whole = {"version": "1.0", "truncation": None, "padding": None,
                 "added_tokens": [], "normalizer": None, "pre_tokenizer": None,
                 "post_processor": None, "decoder": None, "model": MODELS[model], **rest}
        t = Tokenizer.from_str(json.dumps(whole))
        rows = list(rows_of(t, texts, frames, plain))
        rows += [row for row in map(lambda i: decoded(t, i), ids) if row]
        out.append([says, model, rest, rows])

    for step in normalizers():
        put(name_of(step), "bytes", {"normalizer": step, "decoder":
            sequence("decoders", [{"type": "ByteFallback"}, {"type": "Fuse"}])}, RAW)
    for step in pre_tokenizers():
        put(name_of(step), "suffixed", {"pre_tokenizer": step, "decoder":
            {"type": "BPEDecoder", "suffix": "</w>"}}, WORDS)
    for prefix, regex in itertools.product([True, False], repeat=2):
        for model in ["byte_level", "marked_bytes", "whole_bytes"]:
            step = {"type": "ByteLevel", "add_prefix_space": prefix,
                    "trim_offsets": True, "use_regex": regex}
            decoder = {"type": "ByteLevel", "add_prefix_space": True,
                       "trim_offsets": True, "use_regex": True}
            put(model + " " + name_of(step), model, {"pre_tokenizer": step,
                "decoder": decoder}, WORDS + ["é\u00ad中", "b" * 40 + "ab" * 40, "é bb", "bab abab"])
    for step in decoders():
        ids = [[i] for i in range(len(JOINED))]
        ids += [[i, (7 * i + 3) % len(JOINED), (11 * i + 5) % len(JOINED)]
                for i in range(len(JOINED))]
        ids += [[8, 9, 10, 0], [5, 5, 6, 5], [0, 13, 14, 16, 19], [3, 3, 4], [24, 23, 24]]
        put("decoder " + name_of(step or {}), "joined", {"decoder": step}, [], ids=ids)
    for step in frames():
        put(name_of(step), "merges", {"post_processor": step},
            ["aab", "", "ab ba", "bbéab"], frames=True)
    for flag in flags():
        put("an added token " + name_of(flag), "suffixed",
            {"added_tokens": added("suffixed", flag), "normalizer": {"type": "Lowercase"},
             "pre_tokenizer": {"type": "WhitespaceSplit"}}, MARKS, plain=True)
    for text, left, right in [("a b", False, False), ("<b", False, True),
                              ("a>", True, False)]:
        token = {"id": 261, "content": text, "single_word": False, "lstrip": left,
                 "rstrip": right, "normalized": False, "special": False}
        put("bytes with the token %s" % text, "byte_level", {
            "added_tokens": [token], "pre_tokenizer": BYTE_LEVEL}, [
                "a b", "aa bb", "b a> b", "b <b a", "<b  a b", "a  b a b"])
    put("bytes of a stripped text", "byte_level", {
        "normalizer": {"type": "Strip", "strip_left": True, "strip_right": True},
        "pre_tokenizer": BYTE_LEVEL}, [" a b ", "ab b", "  "])
    put("a token in front of a Metaspace for the first", "suffixed",
        {"added_tokens": added("suffixed", next(flags())), "pre_tokenizer":
         {"type": "Metaspace", "replacement": "_", "prepend_scheme": "first",
          "split": True}}, MARKS)
    for model in MODELS:
        if model not in ["bytes", "suffixed", "byte_level", "marked_bytes", "whole_bytes",
                         "joined"]:
            put("the model " + model, model, {}, [
                "a", "b", "ab", "ba", "aab", "aba", "abab", "aaab", "bbbb", "aaaaa", "",
                "aabab", "aéb", "éé", "ééa", "x", "xx", "xax", "axxb", "ab" * 4, "abé",
                "abéx", "a中", "b" * 33, "ab" * 33, "aab" * 30, "ééééé", "aé" * 3, "éa",
                "aabb" * 40 + "x", "a" * 65, "a" * 64, "ba" * 41, "▁a", "▁ab▁", "xy", "axy"])
    for model in ["pieces", "short_pieces", "merges", "prefixed"]:
        put(model + " of words", model, {"pre_tokenizer": {"type": "WhitespaceSplit"}}, [
            "a b ab", "abab ba a", "ab aba aba ab", "b" * 8 + " " + "b" * 7 + " " + "b" * 9,
            "b" * 8 + " " + "b" * 8 + " a", "abababababababa abababababababb",
            "éa éa aé aé", "x a x", "aaaaaaaa aaaaaaaa", "aaaaaaab aaaaaaaa aaaaaaab"])
    out += list(pieces())
    with open(OUT, "w", encoding="utf-8") as f:
        for line in out:
            f.write(json.dumps(line, ensure_ascii=True, separators=(",", ":")) + "\n")


main()
