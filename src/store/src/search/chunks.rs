//! Workspace search indexes: documents, their chunks and postings. Vectors are scored elsewhere.

use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Binary, Double, Integer, Jsonb, Nullable, Text, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use serde_json::Value;
use uuid::Uuid;

use crate::{Changes, Store, StoreError};

/// Maximum chunks per index.
pub const MOST_INDEXED_CHUNKS: i64 = 50_000;
/// Maximum rows per statement.
const CHUNKS_AT_ONCE: usize = 500;
const POSTINGS_AT_ONCE: usize = 20_000;

/// A chunk to store.
#[derive(Debug, Clone)]
pub struct NewChunk {
    /// The text.
    pub text: String,
    /// A JSON object.
    pub metadata: Value,
    /// Normalised 32-bit floats, little-endian.
    pub vector: Option<Vec<u8>>,
    /// The number of terms, including repetitions.
    pub length: i32,
    /// The distinct terms, each with its frequency.
    pub terms: Vec<(String, i32)>,
}

/// The reason why an index rejects a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexRefusal {
    /// It would exceed the maximum chunks; the resulting number.
    Full(i64),
    /// Its vectors have another length; the index's length.
    Dimensions(i32),
}

/// The current state of an index.
#[derive(Debug, Clone, PartialEq, Eq, QueryableByName)]
pub struct StoredIndex {
    /// Its id.
    #[diesel(sql_type = Integer)]
    pub id: i32,
    /// The number of chunks.
    #[diesel(sql_type = BigInt)]
    pub chunks: i64,
    /// The number of chunks with a vector.
    #[diesel(sql_type = BigInt)]
    pub vectors: i64,
    /// The vectors' dimensions.
    #[diesel(sql_type = Nullable<Integer>)]
    pub dimensions: Option<i32>,
}

/// A chunk's position in an index: document and number.
pub type ChunkPlace = (i64, i32);

/// A stored chunk.
#[derive(Debug, Clone, PartialEq, QueryableByName)]
pub struct StoredChunk {
    /// Its document's id.
    #[diesel(sql_type = BigInt)]
    pub document_id: i64,
    /// Its number within the document, from 0.
    #[diesel(sql_type = Integer)]
    pub number: i32,
    /// The document's name.
    #[diesel(sql_type = Text)]
    pub document: String,
    /// Its text.
    #[diesel(sql_type = Text)]
    pub text: String,
    /// A JSON object.
    #[diesel(sql_type = Jsonb)]
    pub metadata: Value,
}

#[derive(QueryableByName)]
struct Scored {
    #[diesel(sql_type = BigInt)]
    document_id: i64,
    #[diesel(sql_type = Integer)]
    number: i32,
    #[diesel(sql_type = Double)]
    score: f64,
}

#[derive(QueryableByName)]
struct Vector {
    #[diesel(sql_type = BigInt)]
    document_id: i64,
    #[diesel(sql_type = Integer)]
    number: i32,
    #[diesel(sql_type = Binary)]
    vector: Vec<u8>,
}

/// A document's current counters in its index.
#[derive(Debug, Default, QueryableByName)]
struct DocumentFigures {
    #[diesel(sql_type = BigInt)]
    id: i64,
    #[diesel(sql_type = BigInt)]
    chunks: i64,
    #[diesel(sql_type = BigInt)]
    length: i64,
    #[diesel(sql_type = BigInt)]
    vectors: i64,
    #[diesel(sql_type = Array<Text>)]
    terms: Vec<String>,
}

const FIND: &str = "SELECT id, chunks, vectors, dimensions FROM search_indexes
     WHERE workspace_id = $1 AND name = $2 AND deleted_at IS NULL";

/// BM25 with k1 = 1.2 and b = 0.75.
const SCORE: &str = "
    WITH whole AS (SELECT chunks::float8 AS n, length::float8 / greatest(chunks, 1) AS average
                   FROM search_indexes WHERE id = $1),
    hits AS (SELECT document_id, number, frequency::float8 AS f, length::float8 AS length,
                    count(*) OVER (PARTITION BY term)::float8 AS df
             FROM search_postings WHERE index_id = $1 AND term = ANY($2))
    SELECT h.document_id, h.number,
           sum(ln((n + 1) / (df + 0.5)) * f * 2.2 / (f + 1.2 * (0.25 + 0.75 * length / greatest(average, 1e-9)))) AS score
    FROM hits h CROSS JOIN whole
    WHERE $3::jsonb IS NULL OR EXISTS (
        SELECT FROM search_chunks c WHERE c.index_id = $1 AND c.document_id = h.document_id AND c.number = h.number
        AND c.metadata @> $3)
    GROUP BY h.document_id, h.number ORDER BY score DESC, h.document_id, h.number LIMIT $4";

impl Store {
    /// Returns a workspace's index.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn search_index(&self, workspace: Uuid, name: &str) -> Result<Option<StoredIndex>, StoreError> {
        let found = diesel::sql_query(FIND)
            .bind::<SqlUuid, _>(workspace)
            .bind::<Text, _>(name)
            .get_result(&mut *self.connection().await?)
            .await
            .optional()?;
        Ok(found)
    }

    /// Replaces all of a document's chunks; without chunks the document is deleted. Creates the index if it
    /// does not exist. Returns the previous number of chunks.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn index_document(
        &self,
        workspace: Uuid,
        name: &str,
        document: &str,
        chunks: &[NewChunk],
        dimensions: Option<i32>,
    ) -> Result<Result<i64, IndexRefusal>, StoreError> {
        let mut index = self.search_index(workspace, name).await?;
        if index.is_none() && !chunks.is_empty() {
            // A separate statement: a caller that creates the same index concurrently waits only for this one.
            diesel::sql_query(
                "INSERT INTO search_indexes (workspace_id, name) VALUES ($1, $2) ON CONFLICT DO NOTHING",
            )
            .bind::<SqlUuid, _>(workspace)
            .bind::<Text, _>(name)
            .execute(&mut *self.connection().await?)
            .await?;
            index = self.search_index(workspace, name).await?;
        }
        let Some(index) = index else { return Ok(Ok(0)) };
        let mut changes = self.begin().await?;
        match changes.replace_document(index.id, document, chunks, dimensions).await {
            Ok(Ok(had)) => changes.commit(None).await.map(|()| Ok(had)),
            other => {
                changes.roll_back().await;
                other
            }
        }
    }

    /// Returns the best matching chunks for these terms by BM25, best first. `filter` contains members that a
    /// chunk's metadata must have.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn search_text(
        &self,
        index: i32,
        terms: &[String],
        filter: Option<&Value>,
        most: i64,
    ) -> Result<Vec<(ChunkPlace, f64)>, StoreError> {
        let found: Vec<Scored> = diesel::sql_query(SCORE)
            .bind::<Integer, _>(index)
            .bind::<Array<Text>, _>(terms)
            .bind::<Nullable<Jsonb>, _>(filter)
            .bind::<BigInt, _>(most)
            .load(&mut *self.connection().await?)
            .await?;
        Ok(found.into_iter().map(|row| ((row.document_id, row.number), row.score)).collect())
    }

    /// Returns the next vectors after a position, in position order.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn search_vectors(
        &self,
        index: i32,
        after: ChunkPlace,
        filter: Option<&Value>,
        most: i64,
    ) -> Result<Vec<(ChunkPlace, Vec<u8>)>, StoreError> {
        let (document, number) = after;
        let found: Vec<Vector> = diesel::sql_query(
            "SELECT document_id, number, vector FROM search_chunks
             WHERE index_id = $1 AND (document_id, number) > ($2, $3) AND vector IS NOT NULL
             AND ($4::jsonb IS NULL OR metadata @> $4) ORDER BY document_id, number LIMIT $5",
        )
        .bind::<Integer, _>(index)
        .bind::<BigInt, _>(document)
        .bind::<Integer, _>(number)
        .bind::<Nullable<Jsonb>, _>(filter)
        .bind::<BigInt, _>(most)
        .load(&mut *self.connection().await?)
        .await?;
        Ok(found.into_iter().map(|row| ((row.document_id, row.number), row.vector)).collect())
    }

    /// Returns the chunks at these positions, in any order; omits deleted ones.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn search_chunks(
        &self,
        index: i32,
        places: &[ChunkPlace],
    ) -> Result<Vec<StoredChunk>, StoreError> {
        let (documents, numbers): (Vec<i64>, Vec<i32>) = places.iter().copied().unzip();
        let found = diesel::sql_query(
            "SELECT c.document_id, c.number, d.document, c.text, c.metadata
             FROM unnest($2::bigint[], $3::int[]) AS wanted (document_id, number)
             JOIN search_chunks c ON c.index_id = $1 AND c.document_id = wanted.document_id AND c.number = wanted.number
             JOIN search_documents d ON d.id = c.document_id",
        )
        .bind::<Integer, _>(index)
        .bind::<Array<BigInt>, _>(documents)
        .bind::<Array<Integer>, _>(numbers)
        .load(&mut *self.connection().await?)
        .await?;
        Ok(found)
    }
}

impl Changes {
    async fn replace_document(
        &mut self,
        index: i32,
        document: &str,
        chunks: &[NewChunk],
        dimensions: Option<i32>,
    ) -> Result<Result<i64, IndexRefusal>, StoreError> {
        let connection = &mut *self.connection;
        // Locks the document's row, and returns its previous counters.
        let had: DocumentFigures = diesel::sql_query(
            "INSERT INTO search_documents (index_id, document) VALUES ($1, $2)
             ON CONFLICT (index_id, document) DO UPDATE SET document = excluded.document
             RETURNING id, chunks, length, vectors, terms",
        )
        .bind::<Integer, _>(index)
        .bind::<Text, _>(document)
        .get_result(connection)
        .await?;
        forget(connection, index, &had).await?;
        let has = DocumentFigures {
            id: had.id,
            chunks: count(chunks.len()),
            length: chunks.iter().map(|chunk| i64::from(chunk.length)).sum(),
            vectors: count(chunks.iter().filter(|chunk| chunk.vector.is_some()).count()),
            terms: terms_of(chunks),
        };
        // Checked before and after the work: most rejections happen here.
        if let Some(refusal) = figures(connection, index, &had, &has, dimensions, false).await? {
            return Ok(Err(refusal));
        }
        write_chunks(connection, index, had.id, chunks).await?;
        write_postings(connection, index, had.id, chunks).await?;
        if chunks.is_empty() {
            diesel::sql_query("DELETE FROM search_documents WHERE id = $1")
                .bind::<BigInt, _>(had.id)
                .execute(connection)
                .await?;
        } else {
            diesel::sql_query(
                "UPDATE search_documents SET chunks = $2, length = $3, vectors = $4, terms = $5 WHERE id = $1",
            )
            .bind::<BigInt, _>(had.id)
            .bind::<BigInt, _>(has.chunks)
            .bind::<BigInt, _>(has.length)
            .bind::<BigInt, _>(has.vectors)
            .bind::<Array<Text>, _>(&has.terms)
            .execute(connection)
            .await?;
        }
        let refusal = figures(connection, index, &had, &has, dimensions, true).await?;
        Ok(refusal.map_or(Ok(had.chunks), Err))
    }
}

/// Checks the index's counters after the change; the last call locks and writes them.
async fn figures(
    connection: &mut AsyncPgConnection,
    index: i32,
    had: &DocumentFigures,
    has: &DocumentFigures,
    dimensions: Option<i32>,
    last: bool,
) -> Result<Option<IndexRefusal>, StoreError> {
    let lock = if last { " FOR UPDATE" } else { "" };
    let sql = format!("SELECT id, chunks, vectors, dimensions FROM search_indexes WHERE id = $1{lock}");
    let now: StoredIndex = diesel::sql_query(sql).bind::<Integer, _>(index).get_result(connection).await?;
    let chunks = now.chunks - had.chunks + has.chunks;
    // An index that already exceeds the limit, for example from a version with another limit, may shrink.
    if chunks > MOST_INDEXED_CHUNKS && has.chunks > had.chunks {
        return Ok(Some(IndexRefusal::Full(chunks)));
    }
    let others = now.vectors - had.vectors;
    let known = now.dimensions.filter(|_| others > 0);
    if let (Some(known), Some(new)) = (known, dimensions)
        && known != new
    {
        return Ok(Some(IndexRefusal::Dimensions(known)));
    }
    if last {
        diesel::sql_query(
            "UPDATE search_indexes SET chunks = $2, length = length + $3, vectors = $4, dimensions = $5 WHERE id = $1",
        )
        .bind::<Integer, _>(index)
        .bind::<BigInt, _>(chunks)
        .bind::<BigInt, _>(has.length - had.length)
        .bind::<BigInt, _>(others + has.vectors)
        .bind::<Nullable<Integer>, _>(dimensions.or(known))
        .execute(connection)
        .await?;
    }
    Ok(None)
}

async fn forget(
    connection: &mut AsyncPgConnection,
    index: i32,
    had: &DocumentFigures,
) -> Result<(), StoreError> {
    if had.chunks == 0 {
        return Ok(());
    }
    for terms in had.terms.chunks(POSTINGS_AT_ONCE) {
        diesel::sql_query(
            "DELETE FROM search_postings WHERE index_id = $1 AND term = ANY($2) AND document_id = $3",
        )
        .bind::<Integer, _>(index)
        .bind::<Array<Text>, _>(terms)
        .bind::<BigInt, _>(had.id)
        .execute(connection)
        .await?;
    }
    diesel::sql_query("DELETE FROM search_chunks WHERE index_id = $1 AND document_id = $2")
        .bind::<Integer, _>(index)
        .bind::<BigInt, _>(had.id)
        .execute(connection)
        .await?;
    Ok(())
}

async fn write_chunks(
    connection: &mut AsyncPgConnection,
    index: i32,
    document: i64,
    chunks: &[NewChunk],
) -> Result<(), StoreError> {
    let numbered: Vec<(i32, &NewChunk)> = (0..).zip(chunks).collect();
    for some in numbered.chunks(CHUNKS_AT_ONCE) {
        let numbers: Vec<i32> = some.iter().map(|(number, _)| *number).collect();
        let texts: Vec<&str> = some.iter().map(|(_, chunk)| chunk.text.as_str()).collect();
        let metadata: Vec<&Value> = some.iter().map(|(_, chunk)| &chunk.metadata).collect();
        let vectors: Vec<Option<&[u8]>> = some.iter().map(|(_, chunk)| chunk.vector.as_deref()).collect();
        diesel::sql_query(
            "INSERT INTO search_chunks (index_id, document_id, number, text, metadata, vector)
             SELECT $1, $2, * FROM unnest($3::int[], $4::text[], $5::jsonb[], $6::bytea[])",
        )
        .bind::<Integer, _>(index)
        .bind::<BigInt, _>(document)
        .bind::<Array<Integer>, _>(numbers)
        .bind::<Array<Text>, _>(texts)
        .bind::<Array<Jsonb>, _>(metadata)
        .bind::<Array<Nullable<Binary>>, _>(vectors)
        .execute(connection)
        .await?;
    }
    Ok(())
}

async fn write_postings(
    connection: &mut AsyncPgConnection,
    index: i32,
    document: i64,
    chunks: &[NewChunk],
) -> Result<(), StoreError> {
    let numbered = (0_i32..).zip(chunks);
    let mut rows: Vec<(&str, i32, i32, i32)> = numbered
        .flat_map(|(number, chunk)| {
            chunk.terms.iter().map(move |(term, frequency)| (term.as_str(), number, *frequency, chunk.length))
        })
        .collect();
    // In key order, so that new rows are stored together.
    rows.sort_unstable();
    for some in rows.chunks(POSTINGS_AT_ONCE) {
        diesel::sql_query(
            "INSERT INTO search_postings (index_id, document_id, term, number, frequency, length)
             SELECT $1, $2, * FROM unnest($3::text[], $4::int[], $5::int[], $6::int[])",
        )
        .bind::<Integer, _>(index)
        .bind::<BigInt, _>(document)
        .bind::<Array<Text>, _>(some.iter().map(|row| row.0).collect::<Vec<_>>())
        .bind::<Array<Integer>, _>(some.iter().map(|row| row.1).collect::<Vec<_>>())
        .bind::<Array<Integer>, _>(some.iter().map(|row| row.2).collect::<Vec<_>>())
        .bind::<Array<Integer>, _>(some.iter().map(|row| row.3).collect::<Vec<_>>())
        .execute(connection)
        .await?;
    }
    Ok(())
}

fn terms_of(chunks: &[NewChunk]) -> Vec<String> {
    let mut terms: Vec<String> =
        chunks.iter().flat_map(|chunk| chunk.terms.iter().map(|(term, _)| term.clone())).collect();
    terms.sort_unstable();
    terms.dedup();
    terms
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
