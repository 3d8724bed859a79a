#!/usr/bin/env bash
# From a general BERT to a table of what a raw biomedical abstract says: import, adapt, fine-tune, read.
#
#   JUMOK_DATA=FOLDER bash docs/biomedical/run.sh WEIGHTS [OUT [ABSTRACT]]
#
# FOLDER has the corpora that the recipes name, WEIGHTS is a Hugging Face folder of an English BERT, ABSTRACT a text file
# with an abstract a line. Begun from the project's root; what is done already is not done again.
set -euo pipefail
weights=$1 out=$(realpath -m "${2:-runs/biomedical}") abstract=${3:-docs/biomedical/abstract.txt}
mkdir -p "$out"

# 1. Other people's weights, and 1,700 abstracts that they go on learning from, with new words in their vocabulary.
[ -d "$out/general" ] || jumok import "$weights" "$out/general"
jumok train recipes/biomed/adapt.toml --out "$out/body" --set init="$out/general"

# 2. Entities: proteins, DNA, RNA, cell types and cell lines; diseases; chemicals and diseases.
for corpus in jnlpba ncbi_disease bc5cdr; do
  jumok train "recipes/$corpus/minilm.toml" --out "$out/$corpus" --set init="$out/body"
done

# 3. Relations: what chemicals do to proteins.
jumok train recipes/chemprot/minilm.toml --out "$out/chemprot" --set init="$out/body"

# 4. A raw abstract: the entities of each tagger, and the relations between them, as tables and as a picture.
#    ChemProt has related pairs only and no label for none: every chemical and protein of a sentence get a relation, and
#    its probability says how much of one.
for corpus in jnlpba ncbi_disease bc5cdr; do
  jumok predict "$out/$corpus" "$abstract" --table tsv > "$out/entities-$corpus.tsv"
done
read_abstract=(jumok predict "$out/chemprot" "$abstract" --entities "$out/jnlpba" --entities "$out/bc5cdr"
  --types protein=GENE)
"${read_abstract[@]}" --table tsv > "$out/relations.tsv"
"${read_abstract[@]}" --table jsonl --picture "$out/abstract.png" > "$out/relations.jsonl"
cat "$out/relations.tsv"
