#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes t/golden/tokenizers: small tokenizers of each kind, trained by Hugging Face's
tokenizers (0.23.3) and sentencepiece (0.2.3), and what these make of some texts.

    python3 t/golden/make_tokenizers.py TEXT...

TEXT: what to train on; the files here are of the comments of include/etude and the first
book of Debian's bible-kjv. expected.jsonl has a line for each tokenizer and text:
[file, text as UTF-8 in hex, ids, decoded text], and of some the ids and types of that
text and "second text" with what stands around them."""
import json
import os
import random
import sys

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import (Regex, Tokenizer, decoders, models, normalizers,
                        pre_tokenizers, processors, trainers)
from tokenizers.implementations import BertWordPieceTokenizer

OUT = os.path.join(os.path.dirname(__file__), "tokenizers")
SIZE = 380


def save(tokenizer, name):
    tokenizer.save(os.path.join(OUT, name))


def gpt2(lines):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    t.train_from_iterator(lines, trainers.BpeTrainer(
        vocab_size=SIZE, special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    save(t, "gpt2.json")


def split(lines):
    """As newer models of its kind: a pattern, then bytes; composed text."""
    t = Tokenizer(models.BPE(ignore_merges=True))
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
            r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(lines, trainers.BpeTrainer(
        vocab_size=SIZE, special_tokens=["<|begin|>", "<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.post_processor = processors.TemplateProcessing(
        single="<|begin|> $A", pair="<|begin|> $A <|end|> $B:1",
        special_tokens=[("<|begin|>", 0), ("<|end|>", 1)])
    save(t, "split.json")


def clip(lines):
    t = Tokenizer(models.BPE(unk_token="<|endoftext|>", end_of_word_suffix="</w>"))
    t.normalizer = normalizers.Sequence([
        normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "),
        normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(
            r"<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"),
            "removed", invert=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False)])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(lines, trainers.BpeTrainer(
        vocab_size=SIZE, end_of_word_suffix="</w>",
        special_tokens=["<|startoftext|>", "<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.post_processor = processors.RobertaProcessing(
        ("<|endoftext|>", 1), ("<|startoftext|>", 0), add_prefix_space=False)
    save(t, "clip.json")


def bert(lines, lower):
    t = BertWordPieceTokenizer(lowercase=lower)
    t.train_from_iterator(lines, vocab_size=SIZE, min_frequency=1)
    t = t._tokenizer
    ids = [("[SEP]", t.token_to_id("[SEP]")), ("[CLS]", t.token_to_id("[CLS]"))]
    t.post_processor = processors.BertProcessing(*ids)
    save(t, "bert.json" if lower else "bert-cased.json")


def llama(lines):
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([
        normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.decoder = decoders.Sequence([
        decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
        decoders.Strip(" ", 1, 0)])
    specials = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % b for b in range(256)]
    t.train_from_iterator([w for line in lines for w in line.split()],
                          trainers.BpeTrainer(vocab_size=SIZE + 200,
                                              special_tokens=specials))
    # Bytes are no special tokens in texts.
    data = json.loads(t.to_str())
    data["added_tokens"] = [a for a in data["added_tokens"]
                            if not a["content"].startswith("<0x")]
    with open(os.path.join(OUT, "llama.json"), "w", encoding="utf-8") as f:
        json.dump(data, f, ensure_ascii=False)


def unigram(lines):
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Strip()])
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    t.decoder = decoders.Metaspace()
    t.train_from_iterator(lines, trainers.UnigramTrainer(
        vocab_size=SIZE, unk_token="<unk>", special_tokens=["<unk>", "<mask>", "</s>"]))
    data = json.loads(t.to_str())
    for a in data["added_tokens"]:
        if a["content"] == "<mask>":
            a["lstrip"] = True
    with open(os.path.join(OUT, "unigram.json"), "w", encoding="utf-8") as f:
        json.dump(data, f, ensure_ascii=False)


def words(lines):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=20))
    t.normalizer = normalizers.Sequence([
        normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Whitespace(), pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.Punctuation()])
    t.decoder = decoders.WordPiece(cleanup=False)
    t.train_from_iterator(lines, trainers.WordPieceTrainer(
        vocab_size=SIZE, special_tokens=["[UNK]"]))
    t.add_tokens(["lord god"])
    save(t, "words.json")


def precompiled():
    """The table of pieces-unigram.model as tokenizers use it, and patterns that match
    nothing; tokens are the bytes of what becomes of a text."""
    table = sentencepiece_model_pb2.ModelProto()
    with open(os.path.join(OUT, "pieces-unigram.model"), "rb") as f:
        table.ParseFromString(f.read())
    t = Tokenizer(models.BPE(byte_fallback=True, merges=[],
                             vocab={"<0x%02X>" % b: b for b in range(256)}))
    t.normalizer = normalizers.Sequence([
        normalizers.Replace(Regex(r"a\K(?=b)"), "+"),
        normalizers.Replace(Regex("(?<=a)z*"), "-"),
        normalizers.Precompiled(table.normalizer_spec.precompiled_charsmap)])
    t.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    save(t, "precompiled.json")


def pieces(path, kind, **more):
    name = "pieces-" + kind
    sentencepiece.SentencePieceTrainer.train(
        input=path, model_prefix=os.path.join(OUT, name), vocab_size=SIZE + 260,
        model_type=kind, hard_vocab_limit=False, minloglevel=2, **more)
    os.remove(os.path.join(OUT, name + ".vocab"))


ODD = ["", " ", "a", "  two  spaces ", "tabs\tand\nlines\r\n\n end", "I'm we'll DON'T it's",
       "naïve café ÀÉÎÕÜ ﬁ Å", "e\u0301 a\u0308\u0323 \u0344", "中文字符 mixed 日本語テキスト",
       "한국어 텍스트", "Ελληνικά ΟΔΟΣ", "русский текст Ё", "İstanbul ıI", "👩‍👩‍👧 🇩🇪 emoji",
       "\u00a0nbsp\u2003em\u3000wide\u200bzero\u180e", "x\u0000y\u0007z\ufffd\u007f",
       "123 4567 ३४५ ½ Ⅷ", "<|endoftext|> <s> </s> [MASK] [CLS]x[SEP]", "a<mask> b <mask>c",
       "Lord God and LordGod", "a_b-c.d/e\\f(g)[h]{i}", "http://a.b/c?d=e&f#g",
       "word" * 30, "z" * 150, " " * 70 + "x", "▁under▁score", "<0x41>", "##ing ##",
       "int main(void)\n{\n    return 0;\n}\n"]


# Two ways whose sums of floats are equal, and of doubles are not.
TIES = ["/* ---- room ---- */\n", "/* ---- cells ---- */\n"]

# Letters of the table with marks, which Precompiled drops, and letters that it leaves.
MARKED = ["\ufb01\u0301x", "A\u030a", "A\u030a\u0301", "\t\u0301x", "\u3000\u0301",
          "\u212b\u030a\u0301\u0302", "\r\n", "\U0001f1e9\U0001f1ea\ufb01", "abzzazz", "zab"]


def strings(seed):
    """The odd ones, and some that are drawn."""
    r = random.Random(seed)
    for text in ODD:
        yield text
    for _ in range(6):
        yield "".join(chr(r.choice([r.randrange(32, 127), r.randrange(32, 127),
                                    r.randrange(0xa0, 0x530), r.randrange(0x3000, 0x9000)]))
                      for _ in range(r.choice([3, 20, 60])))


def main():
    os.makedirs(OUT, exist_ok=True)
    lines = [line for path in sys.argv[1:] for line in open(path, encoding="utf-8")]
    gpt2(lines)
    split(lines)
    clip(lines)
    bert(lines, True)
    bert(lines, False)
    llama(lines)
    unigram(lines)
    words(lines)
    with open("rules.tsv", "w", encoding="utf-8") as f:
        # What becomes what, in hexadecimal: fi, a with a ring, tabs, a wide space.
        f.write("FB01\t66 69\n212B\tC5\n9\t20\nA\t20\n3000\t20\n41 30A\tC5\n")
    with open("train.txt", "w", encoding="utf-8") as f:
        f.writelines(line for line in lines if line.strip())
    pieces("train.txt", "unigram", normalization_rule_tsv="rules.tsv",
           user_defined_symbols=["<sep>", "Lord"])
    pieces("train.txt", "bpe", normalization_rule_name="identity", byte_fallback=True,
           remove_extra_whitespaces=False)
    precompiled()
    with open(os.path.join(OUT, "expected.jsonl"), "w", encoding="utf-8") as f:
        for name in sorted(os.listdir(OUT)):
            more = (TIES if name.endswith(".model") else
                    MARKED if name == "precompiled.json" else [])
            for number, text in enumerate([*strings(len(name)), *more]):
                row = None
                if name.endswith(".json"):
                    t = Tokenizer.from_file(os.path.join(OUT, name))
                    ids = t.encode(text, add_special_tokens=False).ids
                    row = [name, text.encode().hex(), ids,
                           t.decode(ids, skip_special_tokens=False)]
                    if number % 5 == 2:
                        pair = t.encode(text, "second text")
                        row += [pair.ids, pair.type_ids]
                elif name.endswith(".model"):
                    t = sentencepiece.SentencePieceProcessor(os.path.join(OUT, name))
                    ids = t.encode(text)
                    row = [name, text.encode().hex(), ids, t.decode(ids)]
                if row:
                    f.write(json.dumps(row, separators=(",", ":")) + "\n")


main()
