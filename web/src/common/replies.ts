/* Made by web/replies.mjs out of /openapi.json: not to be edited. Without success and
 * degraded, which every reply may have, and without the replies that have nothing else. */
export interface Replies {
    "GET /api/welcome": {
        registration: boolean;
        banned: boolean;
        contact: string;
    };
    "POST /api/register": {
        uid: number;
    };
    "POST /api/login": {
        uid: number;
        username: string;
        token: string;
    };
    "GET /api/me": {
        uid: number;
        username: string;
        balance: string;
        reserved?: string | null;
        free?: string | null;
        permission: number;
        account: "active" | "stopped";
        account_why?: string | null;
        account_since?: string | null;
    };
    "GET /api/sessions": {
        sessions: {
            sid: string;
            current: boolean;
            login_time: string;
            last_activity: string;
            ip_address: string;
            user_agent: string;
        }[];
    };
    "GET /api/tokens": {
        tokens: {
            id: number;
            name: string;
            prefix: string;
            scopes: string[];
            state: "active" | "expired" | "revoked";
            created: string;
            last_used?: string | null;
            last_address?: string | null;
            expires?: string | null;
            revoked?: string | null;
        }[];
        most: number;
        applications: {
            name: string;
            reads: boolean;
            writes: boolean;
            parts?: string | null;
        }[];
    };
    "POST /api/tokens": {
        id: number;
        name: string;
        prefix: string;
        scopes: string[];
        state: "active" | "expired" | "revoked";
        created: string;
        last_used?: string | null;
        last_address?: string | null;
        expires?: string | null;
        revoked?: string | null;
        token: string;
    };
    "GET /api/limits": {
        limits: {
            kind: "training_plan" | "nutrition_plan" | "extraction" | "embedding";
            period: "minute" | "day" | "month";
            used?: number | null;
            limit?: number | null;
            ends?: string | null;
        }[];
    };
    "GET /api/ledger": {
        entries: {
            at: string;
            kind: "opening" | "charge" | "recharge" | "deduction" | "reversal";
            amount: string;
            query_id?: string | null;
            doi?: string | null;
            job?: string | null;
        }[];
        next?: string | null;
    };
    "GET /api/tags": {
        tags: {
            tag: string;
            type: string;
            journals: number;
        }[];
    };
    "GET /api/journals": {
        journals: {
            name: string;
            full_name?: string | null;
            data_range?: string | null;
            update_date?: string | null;
            price: number;
            years: Record<string, number>;
        }[];
    };
    "POST /api/estimate": {
        papers: number;
        cost: string;
        free?: string | null;
        suffices?: boolean | null;
        without_abstract?: number | null;
        simulated: boolean;
        per_journal: {
            journal: string;
            papers: number;
            price: number;
            cost: string;
        }[];
        nearest?: {
            found: number;
            reason?:
                | "no_embedding_service"
                | "embedding_service_away"
                | "nothing_embedded"
                | "index_rebuilt"
                | "vector_store_away"
                | "embedding_model_changed"
                | null;
        } | null;
        reason_code?:
            | "funds"
            | "account"
            | "banned"
            | "admin"
            | "expired"
            | "unrecorded"
            | "refused"
            | "other"
            | "account_stopped"
            | "repairing"
            | "new_runs_off"
            | "drained"
            | "no_permission"
            | "no_key"
            | "keys_resting"
            | "service_down"
            | "queued"
            | "rate_limit"
            | null;
        reason_facts?: {
            position?: number | null;
            of?: number | null;
            others?: number | null;
            permission?: number | null;
            nodes?: number | null;
            keys?: number | null;
            limit?: number | null;
            since?: string | null;
            until?: string | null;
            cause?: string | null;
            words?: string | null;
        } | null;
        seconds_min?: number | null;
        seconds_max?: number | null;
    };
    "GET /api/papers": {
        doi: string;
        journal: string;
        year: number;
        title?: string | null;
        authors?: string | null;
        printed_in?: string | null;
        abstract?: string | null;
        bibtex: string;
    };
    "POST /api/distill/estimate": {
        papers: number;
        cost: string;
        free?: string | null;
        suffices?: boolean | null;
    };
    "POST /api/distill": {
        query_id: string;
    };
    "POST /api/download/create": {
        task_id: string;
    };
    "GET /api/download/status": {
        state: "PENDING" | "PROCESSING" | "READY" | "FAILED";
        progress: number;
        query_id: string;
        type: "csv" | "bib" | "ris";
        scope: "relevant" | "all";
        file_name: string;
        streamed: boolean;
        error?: string | null;
        bytes?: number | null;
        expires_at?: string | null;
    };
    "GET /api/documents": {
        documents: {
            document_id: string;
            name: string;
            media: "text/plain" | "text/markdown" | "application/pdf";
            bytes: number;
            text_bytes?: number | null;
            text_error?: string | null;
            reason_code?:
                | "not_pdf"
                | "pdf_locked"
                | "pdf_damaged"
                | "pdf_pages"
                | "pdf_time"
                | "pdf_memory"
                | "too_much_text"
                | "no_text"
                | null;
            pages?: number | null;
            created_at: string;
        }[];
        next?: string | null;
        bytes_used: number;
        bytes_max: number;
        file_bytes_max: number;
    };
    "POST /api/documents": {
        document_id: string;
        name: string;
        media: "text/plain" | "text/markdown" | "application/pdf";
        bytes: number;
        again: boolean;
    };
    "GET /api/documents/{document_id}": {
        document: {
            document_id: string;
            name: string;
            media: "text/plain" | "text/markdown" | "application/pdf";
            bytes: number;
            text_bytes?: number | null;
            text_error?: string | null;
            reason_code?:
                | "not_pdf"
                | "pdf_locked"
                | "pdf_damaged"
                | "pdf_pages"
                | "pdf_time"
                | "pdf_memory"
                | "too_much_text"
                | "no_text"
                | null;
            pages?: number | null;
            created_at: string;
        };
    };
    "GET /api/templates": {
        templates: {
            template_id: string;
            name: string;
            version: number;
            ready: boolean;
            changed_at?: string | null;
            fields: number;
        }[];
    };
    "POST /api/templates": {
        template_id: string;
        version: number;
    };
    "GET /api/templates/{template_id}": {
        template: {
            template_id: string;
            name: string;
            version: number;
            ready: boolean;
            changed_at?: string | null;
            fields: {
                name: string;
                type: "text" | "number" | "integer" | "boolean" | "date" | "choice" | "list";
                of?: "text" | "number" | "integer" | "boolean" | "date" | "choice" | null;
                unit?: string | null;
                choices?: string[] | null;
                instruction?: string | null;
                required?: boolean | null;
            }[];
        };
    };
    "PUT /api/templates/{template_id}": {
        template_id: string;
        version: number;
    };
    "GET /api/tasks": {
        tasks: {
            task_id: string;
            name: string;
            project_id?: string | null;
            template_id: string;
            template_name: string;
            template_version: number;
            query_id?: string | null;
            created_at: string;
            completed_at?: string | null;
            simulated: boolean;
            status: "processing" | "completed" | "cancelled";
            progress: {
                total: number;
                success: number;
                failed: number;
                percent: number;
            };
            message?: string | null;
            reason_code?:
                | "no_money"
                | "account_stopped"
                | "no_permission"
                | "permission_used"
                | "node_lost"
                | "other"
                | "not_pdf"
                | "pdf_locked"
                | "pdf_damaged"
                | "pdf_pages"
                | "pdf_time"
                | "pdf_memory"
                | "too_much_text"
                | "no_text"
                | "no_key"
                | "service_down"
                | "refused"
                | "too_slow"
                | "bad_answer"
                | "field_missing"
                | "paper_gone"
                | "paper_damaged"
                | "document_gone"
                | "pdf_reader"
                | null;
            cost: string;
        }[];
        next?: string | null;
    };
    "POST /api/tasks": {
        taskId: string;
        total: number;
        webhook_secret?: string | null;
    };
    "POST /api/tasks/estimate": {
        documents: number;
        cost: string;
        simulated: boolean;
        free?: string | null;
        suffices?: boolean | null;
    };
    "GET /api/tasks/{task_id}": {
        task: {
            task_id: string;
            name: string;
            project_id?: string | null;
            template_id: string;
            template_name: string;
            template_version: number;
            query_id?: string | null;
            created_at: string;
            completed_at?: string | null;
            simulated: boolean;
            status: "processing" | "completed" | "cancelled";
            progress: {
                total: number;
                success: number;
                failed: number;
                percent: number;
            };
            message?: string | null;
            reason_code?:
                | "no_money"
                | "account_stopped"
                | "no_permission"
                | "permission_used"
                | "node_lost"
                | "other"
                | "not_pdf"
                | "pdf_locked"
                | "pdf_damaged"
                | "pdf_pages"
                | "pdf_time"
                | "pdf_memory"
                | "too_much_text"
                | "no_text"
                | "no_key"
                | "service_down"
                | "refused"
                | "too_slow"
                | "bad_answer"
                | "field_missing"
                | "paper_gone"
                | "paper_damaged"
                | "document_gone"
                | "pdf_reader"
                | null;
            cost: string;
        };
        model: string;
        fields: {
            name: string;
            type: "text" | "number" | "integer" | "boolean" | "date" | "choice" | "list";
            of?: "text" | "number" | "integer" | "boolean" | "date" | "choice" | null;
            unit?: string | null;
            choices?: string[] | null;
            instruction?: string | null;
            required?: boolean | null;
        }[];
        rows: {
            place: number;
            document_id?: string | null;
            doi?: string | null;
            title?: string | null;
            state: "pending" | "extracting" | "completed" | "error" | "cancelled";
            error?: string | null;
            message?: string | null;
            reason_code?:
                | "no_money"
                | "account_stopped"
                | "no_permission"
                | "permission_used"
                | "node_lost"
                | "other"
                | "not_pdf"
                | "pdf_locked"
                | "pdf_damaged"
                | "pdf_pages"
                | "pdf_time"
                | "pdf_memory"
                | "too_much_text"
                | "no_text"
                | "no_key"
                | "service_down"
                | "refused"
                | "too_slow"
                | "bad_answer"
                | "field_missing"
                | "paper_gone"
                | "paper_damaged"
                | "document_gone"
                | "pdf_reader"
                | null;
            version: number;
            simulated: boolean;
            values?: Record<string, {
                value: string | number | null | boolean | (string | number | null | boolean)[];
                original?: string | null;
                quote?: string | null;
                begin?: number | null;
                end?: number | null;
                part?: number | null;
                verified?: boolean | null;
                unit?: string | null;
                items?: {
                    value: string | number | null | boolean | (string | number | null | boolean)[];
                    original?: string | null;
                    quote?: string | null;
                    begin?: number | null;
                    end?: number | null;
                    part?: number | null;
                    verified?: boolean | null;
                }[] | null;
                more?: boolean | null;
                differs?: {
                    value: string | number | null | boolean | (string | number | null | boolean)[];
                    original?: string | null;
                    quote?: string | null;
                    begin?: number | null;
                    end?: number | null;
                    part?: number | null;
                    verified?: boolean | null;
                }[] | null;
                edited?: boolean | null;
            }> | null;
            edits: Record<string, {
                by: string;
                at: string;
                was: {
                    value: string | number | null | boolean | (string | number | null | boolean)[];
                    original?: string | null;
                    quote?: string | null;
                    begin?: number | null;
                    end?: number | null;
                    part?: number | null;
                    verified?: boolean | null;
                    unit?: string | null;
                    items?: {
                        value:
                            | string
                            | number
                            | null
                            | boolean
                            | (string
                            | number
                            | null
                            | boolean)[];
                        original?: string | null;
                        quote?: string | null;
                        begin?: number | null;
                        end?: number | null;
                        part?: number | null;
                        verified?: boolean | null;
                    }[] | null;
                    more?: boolean | null;
                    differs?: {
                        value:
                            | string
                            | number
                            | null
                            | boolean
                            | (string
                            | number
                            | null
                            | boolean)[];
                        original?: string | null;
                        quote?: string | null;
                        begin?: number | null;
                        end?: number | null;
                        part?: number | null;
                        verified?: boolean | null;
                    }[] | null;
                    edited?: boolean | null;
                };
            }>;
        }[];
        next?: string | null;
        total: number;
    };
    "POST /api/tasks/{task_id}/cancel": {
        status: "processing" | "completed" | "cancelled";
        progress: {
            total: number;
            success: number;
            failed: number;
            percent: number;
        };
        message?: string | null;
        reason_code?:
            | "no_money"
            | "account_stopped"
            | "no_permission"
            | "permission_used"
            | "node_lost"
            | "other"
            | "not_pdf"
            | "pdf_locked"
            | "pdf_damaged"
            | "pdf_pages"
            | "pdf_time"
            | "pdf_memory"
            | "too_much_text"
            | "no_text"
            | "no_key"
            | "service_down"
            | "refused"
            | "too_slow"
            | "bad_answer"
            | "field_missing"
            | "paper_gone"
            | "paper_damaged"
            | "document_gone"
            | "pdf_reader"
            | null;
        cost: string;
    };
    "POST /api/tasks/{task_id}/retry": {
        status: "processing" | "completed" | "cancelled";
        progress: {
            total: number;
            success: number;
            failed: number;
            percent: number;
        };
        message?: string | null;
        reason_code?:
            | "no_money"
            | "account_stopped"
            | "no_permission"
            | "permission_used"
            | "node_lost"
            | "other"
            | "not_pdf"
            | "pdf_locked"
            | "pdf_damaged"
            | "pdf_pages"
            | "pdf_time"
            | "pdf_memory"
            | "too_much_text"
            | "no_text"
            | "no_key"
            | "service_down"
            | "refused"
            | "too_slow"
            | "bad_answer"
            | "field_missing"
            | "paper_gone"
            | "paper_damaged"
            | "document_gone"
            | "pdf_reader"
            | null;
        cost: string;
    };
    "GET /api/tasks/{task_id}/rows/{place}": {
        place: number;
        document_id?: string | null;
        doi?: string | null;
        title?: string | null;
        state: "pending" | "extracting" | "completed" | "error" | "cancelled";
        error?: string | null;
        message?: string | null;
        reason_code?:
            | "no_money"
            | "account_stopped"
            | "no_permission"
            | "permission_used"
            | "node_lost"
            | "other"
            | "not_pdf"
            | "pdf_locked"
            | "pdf_damaged"
            | "pdf_pages"
            | "pdf_time"
            | "pdf_memory"
            | "too_much_text"
            | "no_text"
            | "no_key"
            | "service_down"
            | "refused"
            | "too_slow"
            | "bad_answer"
            | "field_missing"
            | "paper_gone"
            | "paper_damaged"
            | "document_gone"
            | "pdf_reader"
            | null;
        version: number;
        simulated: boolean;
        values?: Record<string, {
            value: string | number | null | boolean | (string | number | null | boolean)[];
            original?: string | null;
            quote?: string | null;
            begin?: number | null;
            end?: number | null;
            part?: number | null;
            verified?: boolean | null;
            unit?: string | null;
            items?: {
                value: string | number | null | boolean | (string | number | null | boolean)[];
                original?: string | null;
                quote?: string | null;
                begin?: number | null;
                end?: number | null;
                part?: number | null;
                verified?: boolean | null;
            }[] | null;
            more?: boolean | null;
            differs?: {
                value: string | number | null | boolean | (string | number | null | boolean)[];
                original?: string | null;
                quote?: string | null;
                begin?: number | null;
                end?: number | null;
                part?: number | null;
                verified?: boolean | null;
            }[] | null;
            edited?: boolean | null;
        }> | null;
        edits: Record<string, {
            by: string;
            at: string;
            was: {
                value: string | number | null | boolean | (string | number | null | boolean)[];
                original?: string | null;
                quote?: string | null;
                begin?: number | null;
                end?: number | null;
                part?: number | null;
                verified?: boolean | null;
                unit?: string | null;
                items?: {
                    value: string | number | null | boolean | (string | number | null | boolean)[];
                    original?: string | null;
                    quote?: string | null;
                    begin?: number | null;
                    end?: number | null;
                    part?: number | null;
                    verified?: boolean | null;
                }[] | null;
                more?: boolean | null;
                differs?: {
                    value: string | number | null | boolean | (string | number | null | boolean)[];
                    original?: string | null;
                    quote?: string | null;
                    begin?: number | null;
                    end?: number | null;
                    part?: number | null;
                    verified?: boolean | null;
                }[] | null;
                edited?: boolean | null;
            };
        }>;
    };
    "PUT /api/tasks/{task_id}/rows/{place}": {
        version: number;
        value: {
            value: string | number | null | boolean | (string | number | null | boolean)[];
            original?: string | null;
            quote?: string | null;
            begin?: number | null;
            end?: number | null;
            part?: number | null;
            verified?: boolean | null;
            unit?: string | null;
            items?: {
                value: string | number | null | boolean | (string | number | null | boolean)[];
                original?: string | null;
                quote?: string | null;
                begin?: number | null;
                end?: number | null;
                part?: number | null;
                verified?: boolean | null;
            }[] | null;
            more?: boolean | null;
            differs?: {
                value: string | number | null | boolean | (string | number | null | boolean)[];
                original?: string | null;
                quote?: string | null;
                begin?: number | null;
                end?: number | null;
                part?: number | null;
                verified?: boolean | null;
            }[] | null;
            edited?: boolean | null;
        };
        edit?: {
            by: string;
            at: string;
            was: {
                value: string | number | null | boolean | (string | number | null | boolean)[];
                original?: string | null;
                quote?: string | null;
                begin?: number | null;
                end?: number | null;
                part?: number | null;
                verified?: boolean | null;
                unit?: string | null;
                items?: {
                    value: string | number | null | boolean | (string | number | null | boolean)[];
                    original?: string | null;
                    quote?: string | null;
                    begin?: number | null;
                    end?: number | null;
                    part?: number | null;
                    verified?: boolean | null;
                }[] | null;
                more?: boolean | null;
                differs?: {
                    value: string | number | null | boolean | (string | number | null | boolean)[];
                    original?: string | null;
                    quote?: string | null;
                    begin?: number | null;
                    end?: number | null;
                    part?: number | null;
                    verified?: boolean | null;
                }[] | null;
                edited?: boolean | null;
            };
        } | null;
    };
    "GET /api/tasks/{task_id}/rows/{place}/edits": {
        edits: {
            field: string;
            by: string;
            at: string;
            version: number;
            was: {
                value: string | number | null | boolean | (string | number | null | boolean)[];
                original?: string | null;
                quote?: string | null;
                begin?: number | null;
                end?: number | null;
                part?: number | null;
                verified?: boolean | null;
                unit?: string | null;
                items?: {
                    value: string | number | null | boolean | (string | number | null | boolean)[];
                    original?: string | null;
                    quote?: string | null;
                    begin?: number | null;
                    end?: number | null;
                    part?: number | null;
                    verified?: boolean | null;
                }[] | null;
                more?: boolean | null;
                differs?: {
                    value: string | number | null | boolean | (string | number | null | boolean)[];
                    original?: string | null;
                    quote?: string | null;
                    begin?: number | null;
                    end?: number | null;
                    part?: number | null;
                    verified?: boolean | null;
                }[] | null;
                edited?: boolean | null;
            };
            now: {
                value: string | number | null | boolean | (string | number | null | boolean)[];
                original?: string | null;
                quote?: string | null;
                begin?: number | null;
                end?: number | null;
                part?: number | null;
                verified?: boolean | null;
                unit?: string | null;
                items?: {
                    value: string | number | null | boolean | (string | number | null | boolean)[];
                    original?: string | null;
                    quote?: string | null;
                    begin?: number | null;
                    end?: number | null;
                    part?: number | null;
                    verified?: boolean | null;
                }[] | null;
                more?: boolean | null;
                differs?: {
                    value: string | number | null | boolean | (string | number | null | boolean)[];
                    original?: string | null;
                    quote?: string | null;
                    begin?: number | null;
                    end?: number | null;
                    part?: number | null;
                    verified?: boolean | null;
                }[] | null;
                edited?: boolean | null;
            };
        }[];
        next?: string | null;
    };
    "POST /api/tasks/{task_id}/rows/{place}/retry": {
        status: "processing" | "completed" | "cancelled";
        progress: {
            total: number;
            success: number;
            failed: number;
            percent: number;
        };
        message?: string | null;
        reason_code?:
            | "no_money"
            | "account_stopped"
            | "no_permission"
            | "permission_used"
            | "node_lost"
            | "other"
            | "not_pdf"
            | "pdf_locked"
            | "pdf_damaged"
            | "pdf_pages"
            | "pdf_time"
            | "pdf_memory"
            | "too_much_text"
            | "no_text"
            | "no_key"
            | "service_down"
            | "refused"
            | "too_slow"
            | "bad_answer"
            | "field_missing"
            | "paper_gone"
            | "paper_damaged"
            | "document_gone"
            | "pdf_reader"
            | null;
        cost: string;
    };
    "GET /api/tasks/{task_id}/status": {
        status: "processing" | "completed" | "cancelled";
        progress: {
            total: number;
            success: number;
            failed: number;
            percent: number;
        };
        message?: string | null;
        reason_code?:
            | "no_money"
            | "account_stopped"
            | "no_permission"
            | "permission_used"
            | "node_lost"
            | "other"
            | "not_pdf"
            | "pdf_locked"
            | "pdf_damaged"
            | "pdf_pages"
            | "pdf_time"
            | "pdf_memory"
            | "too_much_text"
            | "no_text"
            | "no_key"
            | "service_down"
            | "refused"
            | "too_slow"
            | "bad_answer"
            | "field_missing"
            | "paper_gone"
            | "paper_damaged"
            | "document_gone"
            | "pdf_reader"
            | null;
        cost: string;
    };
    "POST /api/plans": {
        task_id: string;
    };
    "GET /api/plans": {
        plans: {
            plan_id: string;
            kind: "training" | "nutrition";
            name: string;
            start_date: string;
            end_date: string;
            total_weeks: number;
            difficulty?: string | null;
            daily_calories?: number | null;
            macro_ratio?: Record<string, string | number | null> | null;
            template_id: number;
            template_version: number;
            variables: Record<string, string | number | null>;
            simulated: boolean;
            active: boolean;
            version: number;
            created_at: string;
            changed_at: string;
        }[];
        next?: string | null;
    };
    "GET /api/plans/active": {
        plan: {
            plan_id: string;
            kind: "training" | "nutrition";
            name: string;
            start_date: string;
            end_date: string;
            total_weeks: number;
            difficulty?: string | null;
            daily_calories?: number | null;
            macro_ratio?: Record<string, string | number | null> | null;
            template_id: number;
            template_version: number;
            variables: Record<string, string | number | null>;
            simulated: boolean;
            active: boolean;
            version: number;
            created_at: string;
            changed_at: string;
            days: {
                date: string;
                day_type?: string | null;
                focus_area?: string | null;
                exercises?: {
                    name: string;
                    sets: number;
                    reps: number;
                    weight?: string | null;
                    rest?: string | null;
                    difficulty?: string | null;
                }[] | null;
                duration?: number | null;
                estimated_calories?: number | null;
                target_calories?: number | null;
                target_protein?: number | null;
                target_carbs?: number | null;
                target_fat?: number | null;
                meals?: {
                    breakfast?: {
                        name: string;
                        calories: number;
                        protein?: number | null;
                        carbs?: number | null;
                        fat?: number | null;
                    }[] | null;
                    lunch?: {
                        name: string;
                        calories: number;
                        protein?: number | null;
                        carbs?: number | null;
                        fat?: number | null;
                    }[] | null;
                    dinner?: {
                        name: string;
                        calories: number;
                        protein?: number | null;
                        carbs?: number | null;
                        fat?: number | null;
                    }[] | null;
                    snacks?: {
                        name: string;
                        calories: number;
                        protein?: number | null;
                        carbs?: number | null;
                        fat?: number | null;
                    }[] | null;
                } | null;
                version: number;
            }[];
        };
    };
    "GET /api/plans/{plan_id}": {
        plan: {
            plan_id: string;
            kind: "training" | "nutrition";
            name: string;
            start_date: string;
            end_date: string;
            total_weeks: number;
            difficulty?: string | null;
            daily_calories?: number | null;
            macro_ratio?: Record<string, string | number | null> | null;
            template_id: number;
            template_version: number;
            variables: Record<string, string | number | null>;
            simulated: boolean;
            active: boolean;
            version: number;
            created_at: string;
            changed_at: string;
            days: {
                date: string;
                day_type?: string | null;
                focus_area?: string | null;
                exercises?: {
                    name: string;
                    sets: number;
                    reps: number;
                    weight?: string | null;
                    rest?: string | null;
                    difficulty?: string | null;
                }[] | null;
                duration?: number | null;
                estimated_calories?: number | null;
                target_calories?: number | null;
                target_protein?: number | null;
                target_carbs?: number | null;
                target_fat?: number | null;
                meals?: {
                    breakfast?: {
                        name: string;
                        calories: number;
                        protein?: number | null;
                        carbs?: number | null;
                        fat?: number | null;
                    }[] | null;
                    lunch?: {
                        name: string;
                        calories: number;
                        protein?: number | null;
                        carbs?: number | null;
                        fat?: number | null;
                    }[] | null;
                    dinner?: {
                        name: string;
                        calories: number;
                        protein?: number | null;
                        carbs?: number | null;
                        fat?: number | null;
                    }[] | null;
                    snacks?: {
                        name: string;
                        calories: number;
                        protein?: number | null;
                        carbs?: number | null;
                        fat?: number | null;
                    }[] | null;
                } | null;
                version: number;
            }[];
        };
    };
    "POST /api/plans/{plan_id}/activate": {
        plan_id: string;
        was?: string | null;
    };
    "GET /api/plans/{plan_id}/days/{date}": {
        plan_id: string;
        kind: "training" | "nutrition";
        version: number;
        day: {
            date: string;
            day_type?: string | null;
            focus_area?: string | null;
            exercises?: {
                name: string;
                sets: number;
                reps: number;
                weight?: string | null;
                rest?: string | null;
                difficulty?: string | null;
            }[] | null;
            duration?: number | null;
            estimated_calories?: number | null;
            target_calories?: number | null;
            target_protein?: number | null;
            target_carbs?: number | null;
            target_fat?: number | null;
            meals?: {
                breakfast?: {
                    name: string;
                    calories: number;
                    protein?: number | null;
                    carbs?: number | null;
                    fat?: number | null;
                }[] | null;
                lunch?: {
                    name: string;
                    calories: number;
                    protein?: number | null;
                    carbs?: number | null;
                    fat?: number | null;
                }[] | null;
                dinner?: {
                    name: string;
                    calories: number;
                    protein?: number | null;
                    carbs?: number | null;
                    fat?: number | null;
                }[] | null;
                snacks?: {
                    name: string;
                    calories: number;
                    protein?: number | null;
                    carbs?: number | null;
                    fat?: number | null;
                }[] | null;
            } | null;
        };
    };
    "PUT /api/plans/{plan_id}/days/{date}": {
        plan_id: string;
        kind: "training" | "nutrition";
        version: number;
        day: {
            date: string;
            day_type?: string | null;
            focus_area?: string | null;
            exercises?: {
                name: string;
                sets: number;
                reps: number;
                weight?: string | null;
                rest?: string | null;
                difficulty?: string | null;
            }[] | null;
            duration?: number | null;
            estimated_calories?: number | null;
            target_calories?: number | null;
            target_protein?: number | null;
            target_carbs?: number | null;
            target_fat?: number | null;
            meals?: {
                breakfast?: {
                    name: string;
                    calories: number;
                    protein?: number | null;
                    carbs?: number | null;
                    fat?: number | null;
                }[] | null;
                lunch?: {
                    name: string;
                    calories: number;
                    protein?: number | null;
                    carbs?: number | null;
                    fat?: number | null;
                }[] | null;
                dinner?: {
                    name: string;
                    calories: number;
                    protein?: number | null;
                    carbs?: number | null;
                    fat?: number | null;
                }[] | null;
                snacks?: {
                    name: string;
                    calories: number;
                    protein?: number | null;
                    carbs?: number | null;
                    fat?: number | null;
                }[] | null;
            } | null;
        };
    };
    "GET /api/generation": {
        tasks: {
            task_id: string;
            kind: "training" | "nutrition";
            status: "generating" | "completed" | "failed" | "cancelled";
            progress: number;
            plan_id?: string | null;
            message?: string | null;
            reason_code?:
                | "no_money"
                | "account_stopped"
                | "no_permission"
                | "permission_used"
                | "node_lost"
                | "other"
                | "no_key"
                | "service_down"
                | "refused"
                | "bad_answer"
                | "too_slow"
                | "too_old"
                | "cancelled"
                | null;
            cost?: string | null;
            created_at: string;
        }[];
    };
    "GET /api/generation/{generation_id}": {
        task_id: string;
        kind: "training" | "nutrition";
        status: "generating" | "completed" | "failed" | "cancelled";
        progress: number;
        plan_id?: string | null;
        message?: string | null;
        reason_code?:
            | "no_money"
            | "account_stopped"
            | "no_permission"
            | "permission_used"
            | "node_lost"
            | "other"
            | "no_key"
            | "service_down"
            | "refused"
            | "bad_answer"
            | "too_slow"
            | "too_old"
            | "cancelled"
            | null;
        cost?: string | null;
        created_at: string;
    };
    "DELETE /api/generation/{generation_id}": {
        task_id: string;
        kind: "training" | "nutrition";
        status: "generating" | "completed" | "failed" | "cancelled";
        progress: number;
        plan_id?: string | null;
        message?: string | null;
        reason_code?:
            | "no_money"
            | "account_stopped"
            | "no_permission"
            | "permission_used"
            | "node_lost"
            | "other"
            | "no_key"
            | "service_down"
            | "refused"
            | "bad_answer"
            | "too_slow"
            | "too_old"
            | "cancelled"
            | null;
        cost?: string | null;
        created_at: string;
    };
    "GET /api/plan_templates": {
        templates: {
            id: number;
            category: string;
            subcategory: string;
            name: string;
            is_default: boolean;
            version: number;
            price?: string | null;
            variables: {
                name: string;
                type: "text" | "integer" | "number" | "date" | "choice";
                label?: string | null;
                default?: string | null;
                required?: boolean | null;
                choices?: string[] | null;
                least?: number | null;
                most?: number | null;
            }[];
        }[];
        simulated: boolean;
    };
    "POST /api/pools/{type}/{group}/pop": {
        items: {
            id: number;
            text: string;
        }[];
    };
    "GET /api/pools": {
        pools: {
            type: string;
            group: number;
            usable: number;
            in_list: number;
            handed_out: number;
            used: number;
        }[];
        counted_at: string;
    };
    "GET /api/posts": {
        posts: {
            title: string;
            hide: boolean;
            mine: boolean;
            uid?: number | null;
            version: number;
            created_at: string;
            changed_at: string;
            id: number;
            rag_status: "pending" | "processing" | "completed" | "failed";
            rag_error?: string | null;
            reason_code?:
                | "no_money"
                | "account_stopped"
                | "no_permission"
                | "permission_used"
                | "node_lost"
                | "other"
                | "no_embedding_service"
                | "service_down"
                | "refused"
                | "too_slow"
                | "too_long"
                | "bad_answer"
                | null;
            progress: {
                done: number;
                total: number;
            };
        }[];
        next?: string | null;
        content_chars_max: number;
        price: string;
        service: boolean;
        simulated: boolean;
    };
    "POST /api/posts": {
        post: {
            title: string;
            hide: boolean;
            mine: boolean;
            uid?: number | null;
            version: number;
            created_at: string;
            changed_at: string;
            id: number;
            rag_status: "pending" | "processing" | "completed" | "failed";
            rag_error?: string | null;
            reason_code?:
                | "no_money"
                | "account_stopped"
                | "no_permission"
                | "permission_used"
                | "node_lost"
                | "other"
                | "no_embedding_service"
                | "service_down"
                | "refused"
                | "too_slow"
                | "too_long"
                | "bad_answer"
                | null;
            progress: {
                done: number;
                total: number;
            };
            content: string;
        };
    };
    "GET /api/posts/{post_id}": {
        post: {
            title: string;
            hide: boolean;
            mine: boolean;
            uid?: number | null;
            version: number;
            created_at: string;
            changed_at: string;
            id: number;
            rag_status: "pending" | "processing" | "completed" | "failed";
            rag_error?: string | null;
            reason_code?:
                | "no_money"
                | "account_stopped"
                | "no_permission"
                | "permission_used"
                | "node_lost"
                | "other"
                | "no_embedding_service"
                | "service_down"
                | "refused"
                | "too_slow"
                | "too_long"
                | "bad_answer"
                | null;
            progress: {
                done: number;
                total: number;
            };
            content: string;
        };
    };
    "PUT /api/posts/{post_id}": {
        post: {
            title: string;
            hide: boolean;
            mine: boolean;
            uid?: number | null;
            version: number;
            created_at: string;
            changed_at: string;
            id: number;
            rag_status: "pending" | "processing" | "completed" | "failed";
            rag_error?: string | null;
            reason_code?:
                | "no_money"
                | "account_stopped"
                | "no_permission"
                | "permission_used"
                | "node_lost"
                | "other"
                | "no_embedding_service"
                | "service_down"
                | "refused"
                | "too_slow"
                | "too_long"
                | "bad_answer"
                | null;
            progress: {
                done: number;
                total: number;
            };
            content: string;
        };
    };
    "POST /api/post/{post_id}/embed": {
        queued: boolean;
    };
    "POST /api/post/embed/batch": {
        queued: number;
        refused: number;
    };
    "GET /api/embedding/queue/status": {
        data: {
            queueLength: number;
            processingCount: number;
            queueTasks: {
                postId: number;
                title?: string | null;
                uid: number;
                priority: number;
                tries: number;
                addTime: string;
            }[];
            processingTasks: {
                postId: number;
                title?: string | null;
                uid: number;
                priority: number;
                tries: number;
                addTime: string;
            }[];
        };
    };
    "GET /api/queries": {
        queries: {
            query_id: string;
            state: "QUEUED" | "RUNNING" | "PAUSED" | "DONE" | "CANCELLED" | "FAILED";
            reason?: string | null;
            reason_code?:
                | "funds"
                | "account"
                | "banned"
                | "admin"
                | "expired"
                | "unrecorded"
                | "refused"
                | "other"
                | "account_stopped"
                | "repairing"
                | "new_runs_off"
                | "drained"
                | "no_permission"
                | "no_key"
                | "keys_resting"
                | "service_down"
                | "queued"
                | "rate_limit"
                | null;
            reason_facts?: {
                position?: number | null;
                of?: number | null;
                others?: number | null;
                permission?: number | null;
                nodes?: number | null;
                keys?: number | null;
                limit?: number | null;
                since?: string | null;
                until?: string | null;
                cause?: string | null;
                words?: string | null;
            } | null;
            question: string;
            papers: number;
            finished: number;
            relevant: number;
            failed: number;
            not_judged: number;
            withdrawn: number;
            cost: string;
            estimate: string;
            reserved: string;
            workers: number;
            seconds_left_min?: number | null;
            seconds_left_max?: number | null;
            created_at: string;
            start_time?: string | null;
            end_time?: string | null;
            is_distillation: boolean;
            original_query_id?: string | null;
            nearest?: {
                q: string;
                n: number;
                found: number;
                journals?: string[] | null;
            } | null;
            simulated: boolean;
            distillations?: string[] | null;
        }[];
        next?: string | null;
    };
    "POST /api/queries": {
        query_id: string;
    };
    "GET /api/queries/{id}": {
        query_id: string;
        state: "QUEUED" | "RUNNING" | "PAUSED" | "DONE" | "CANCELLED" | "FAILED";
        reason?: string | null;
        reason_code?:
            | "funds"
            | "account"
            | "banned"
            | "admin"
            | "expired"
            | "unrecorded"
            | "refused"
            | "other"
            | "account_stopped"
            | "repairing"
            | "new_runs_off"
            | "drained"
            | "no_permission"
            | "no_key"
            | "keys_resting"
            | "service_down"
            | "queued"
            | "rate_limit"
            | null;
        reason_facts?: {
            position?: number | null;
            of?: number | null;
            others?: number | null;
            permission?: number | null;
            nodes?: number | null;
            keys?: number | null;
            limit?: number | null;
            since?: string | null;
            until?: string | null;
            cause?: string | null;
            words?: string | null;
        } | null;
        question: string;
        papers: number;
        finished: number;
        relevant: number;
        failed: number;
        not_judged: number;
        withdrawn: number;
        cost: string;
        estimate: string;
        reserved: string;
        workers: number;
        seconds_left_min?: number | null;
        seconds_left_max?: number | null;
        created_at: string;
        start_time?: string | null;
        end_time?: string | null;
        is_distillation: boolean;
        original_query_id?: string | null;
        nearest?: {
            q: string;
            n: number;
            found: number;
            journals?: string[] | null;
        } | null;
        simulated: boolean;
        distillations?: string[] | null;
    };
    "POST /api/queries/{id}/pause": {
        state: "QUEUED" | "RUNNING" | "PAUSED" | "DONE" | "CANCELLED" | "FAILED";
    };
    "POST /api/queries/{id}/resume": {
        state: "QUEUED" | "RUNNING" | "PAUSED" | "DONE" | "CANCELLED" | "FAILED";
    };
    "POST /api/queries/{id}/terminate": {
        state: "QUEUED" | "RUNNING" | "PAUSED" | "DONE" | "CANCELLED" | "FAILED";
    };
    "POST /api/queries/{id}/retry_failed": {
        state: "QUEUED" | "RUNNING" | "PAUSED" | "DONE" | "CANCELLED" | "FAILED";
    };
    "GET /api/queries/{id}/scope": {
        query_id: string;
        question: string;
        is_distillation: boolean;
        distilled_from?: {
            query_id: string;
            question: string;
            papers: number;
            relevant: number;
            simulated: boolean;
        } | null;
        nearest?: {
            q: string;
            n: number;
            found: number;
            journals?: string[] | null;
        } | null;
        journals: {
            name: string;
            price?: number | null;
            papers?: number | null;
        }[];
        year_from?: number | null;
        year_to?: number | null;
        papers: number;
        without_abstract?: number | null;
        simulated: boolean;
        judged_by: {
            model: string;
            simulated: boolean;
            prompt_digest: string;
            prompt: string;
            since: string;
        }[];
        created_at: string;
        start_time?: string | null;
        end_time?: string | null;
    };
    "GET /api/queries/{id}/results": {
        results: {
            doi: string;
            title?: string | null;
            journal: string;
            year: number;
            relevant?: boolean | null;
            reason?: string | null;
            error?: string | null;
            not_judged: boolean;
            withdrawn: boolean;
            simulated: boolean;
        }[];
        next?: string | null;
        restarted: boolean;
    };
    "GET /api/queries/{id}/paper": {
        doi: string;
        title?: string | null;
        journal: string;
        year: number;
        relevant?: boolean | null;
        reason?: string | null;
        error?: string | null;
        not_judged: boolean;
        withdrawn: boolean;
        simulated: boolean;
        authors?: string | null;
        printed_in?: string | null;
        abstract?: string | null;
        bibtex?: string | null;
    };
    "GET /api/search": {
        hits: {
            kind: "post" | "paper";
            id?: number | null;
            doi?: string | null;
            title: string;
            snippet: string;
            marks: {
                begin: number;
                end: number;
            }[];
            score: number;
            journal?: string | null;
            year?: number | null;
            hide?: boolean | null;
            mine?: boolean | null;
        }[];
        next?: string | null;
        reason?:
            | "no_embedding_service"
            | "embedding_service_away"
            | "nothing_embedded"
            | "index_rebuilt"
            | "vector_store_away"
            | "embedding_model_changed"
            | "words_index_away"
            | null;
        searched: {
            kind: "post" | "paper";
            total?: number | null;
            by_words?: number | null;
            by_meaning?: number | null;
        }[];
    };
    "GET /api/search/like": {
        hits: {
            kind: "post" | "paper";
            id?: number | null;
            doi?: string | null;
            title: string;
            snippet: string;
            marks: {
                begin: number;
                end: number;
            }[];
            score: number;
            journal?: string | null;
            year?: number | null;
            hide?: boolean | null;
            mine?: boolean | null;
        }[];
        reason?:
            | "no_embedding_service"
            | "embedding_service_away"
            | "nothing_embedded"
            | "index_rebuilt"
            | "vector_store_away"
            | "embedding_model_changed"
            | "words_index_away"
            | null;
    };
    "POST /api/admin/login": {
        uid: number;
        username: string;
        token: string;
        role: "super" | "admin";
    };
    "GET /api/admin/me": {
        uid: number;
        username: string;
        role: "super" | "admin";
    };
    "GET /api/admin/sessions": {
        sessions: {
            sid: string;
            current: boolean;
            login_time: string;
            last_activity: string;
            ip_address: string;
            user_agent: string;
        }[];
    };
    "GET /api/admin/admins": {
        admins: {
            uid: number;
            username: string;
            role: "super" | "admin";
            created_at: string;
        }[];
    };
    "POST /api/admin/admins": {
        uid: number;
    };
    "POST /api/admin/admins/{admin}/role": {
        uid: number;
        role: "super" | "admin";
    };
    "GET /api/admin/users": {
        users: {
            uid: number;
            username: string;
            balance: string;
            permission: number;
            banned: boolean;
            created_at: string;
        }[];
        next?: string | null;
    };
    "GET /api/admin/users/{uid}": {
        uid: number;
        username: string;
        balance: string;
        permission: number;
        banned: boolean;
        created_at: string;
        reserved?: string | null;
        free?: string | null;
        runs: number;
        runs_active: number;
        account: "active" | "stopped";
        account_why?: string | null;
        account_since?: string | null;
    };
    "POST /api/admin/users/{uid}/permission": {
        uid: number;
        username: string;
        balance: string;
        permission: number;
        banned: boolean;
        created_at: string;
        reserved?: string | null;
        free?: string | null;
        runs: number;
        runs_active: number;
        account: "active" | "stopped";
        account_why?: string | null;
        account_since?: string | null;
    };
    "POST /api/admin/users/{uid}/ban": {
        uid: number;
        username: string;
        balance: string;
        permission: number;
        banned: boolean;
        created_at: string;
        reserved?: string | null;
        free?: string | null;
        runs: number;
        runs_active: number;
        account: "active" | "stopped";
        account_why?: string | null;
        account_since?: string | null;
    };
    "GET /api/admin/users/{uid}/tokens": {
        tokens: {
            id: number;
            name: string;
            prefix: string;
            scopes: string[];
            state: "active" | "expired" | "revoked";
            created: string;
            last_used?: string | null;
            last_address?: string | null;
            expires?: string | null;
            revoked?: string | null;
        }[];
    };
    "POST /api/admin/users/{uid}/recharge": {
        balance: string;
    };
    "POST /api/admin/users/{uid}/deduct": {
        balance: string;
    };
    "GET /api/admin/users/{uid}/ledger": {
        records: {
            source: "redis" | "mysql";
            number: number;
            at: string;
            kind: "opening" | "charge" | "recharge" | "deduction" | "reversal";
            amount: string;
            query_id?: string | null;
            doi?: string | null;
            job?: string | null;
        }[];
        next?: string | null;
    };
    "GET /api/admin/users/{uid}/runs": {
        queries: {
            query_id: string;
            state: "QUEUED" | "RUNNING" | "PAUSED" | "DONE" | "CANCELLED" | "FAILED";
            reason?: string | null;
            reason_code?:
                | "funds"
                | "account"
                | "banned"
                | "admin"
                | "expired"
                | "unrecorded"
                | "refused"
                | "other"
                | "account_stopped"
                | "repairing"
                | "new_runs_off"
                | "drained"
                | "no_permission"
                | "no_key"
                | "keys_resting"
                | "service_down"
                | "queued"
                | "rate_limit"
                | null;
            reason_facts?: {
                position?: number | null;
                of?: number | null;
                others?: number | null;
                permission?: number | null;
                nodes?: number | null;
                keys?: number | null;
                limit?: number | null;
                since?: string | null;
                until?: string | null;
                cause?: string | null;
                words?: string | null;
            } | null;
            question: string;
            papers: number;
            finished: number;
            relevant: number;
            failed: number;
            not_judged: number;
            withdrawn: number;
            cost: string;
            estimate: string;
            reserved: string;
            workers: number;
            seconds_left_min?: number | null;
            seconds_left_max?: number | null;
            created_at: string;
            start_time?: string | null;
            end_time?: string | null;
            is_distillation: boolean;
            original_query_id?: string | null;
            nearest?: {
                q: string;
                n: number;
                found: number;
                journals?: string[] | null;
            } | null;
            simulated: boolean;
            distillations?: string[] | null;
        }[];
        next?: string | null;
    };
    "POST /api/admin/runs/{id}/terminate": {
        state: "QUEUED" | "RUNNING" | "PAUSED" | "DONE" | "CANCELLED" | "FAILED";
    };
    "GET /api/admin/switches": {
        switches: {
            name: "registration" | "new_runs";
            on: boolean;
            about: string;
        }[];
    };
    "POST /api/admin/switches": {
        name: "registration" | "new_runs";
        on: boolean;
    };
    "POST /api/admin/toggle_registration": {
        enabled: boolean;
    };
    "GET /api/admin/keys": {
        keys: {
            id: number;
            key: string;
            name: string;
            service: "chat" | "embedding";
            rpm_limit: number;
            tpm_limit: number;
            state: "active" | "off" | "refused" | "resting" | "capped";
            rests_ms: number;
            last_error?: string | null;
            last_error_at?: string | null;
            active: boolean;
            minute_cap?: number | null;
            day_cap?: number | null;
            month_cap?: number | null;
        }[];
    };
    "POST /api/admin/keys": {
        id: number;
    };
    "POST /api/admin/keys/{key}": {
        id: number;
        key: string;
        name: string;
        service: "chat" | "embedding";
        rpm_limit: number;
        tpm_limit: number;
        state: "active" | "off" | "refused" | "resting" | "capped";
        rests_ms: number;
        last_error?: string | null;
        last_error_at?: string | null;
        active: boolean;
        minute_cap?: number | null;
        day_cap?: number | null;
        month_cap?: number | null;
    };
    "POST /api/admin/keys/{key}/wake": {
        id: number;
        key: string;
        name: string;
        service: "chat" | "embedding";
        rpm_limit: number;
        tpm_limit: number;
        state: "active" | "off" | "refused" | "resting" | "capped";
        rests_ms: number;
        last_error?: string | null;
        last_error_at?: string | null;
        active: boolean;
        minute_cap?: number | null;
        day_cap?: number | null;
        month_cap?: number | null;
    };
    "POST /api/admin/keys/{key}/test": {
        key: string;
        outcome: "works" | "refused" | "no_money" | "limited" | "unreachable" | "failed";
        words?: string | null;
        status?: number | null;
        latency_ms: number;
    };
    "POST /api/admin/nodes/{id}/drain": {
        id: string;
        drained: boolean;
    };
    "POST /api/admin/nodes/{id}/undrain": {
        id: string;
        drained: boolean;
    };
    "POST /api/admin/prompts/reload": {
        prompt: string;
    };
    "GET /api/admin/overview": {
        at: string;
        well: boolean;
        rpm: {
            used: number;
            limit: number;
            slots: number[];
        };
        tpm: {
            used: number;
            limit: number;
            slots: number[];
        };
        backlog: {
            queued: number;
            oldest_seconds: number;
            running: number;
            archive_waiting: number;
            downloads_waiting: number;
            downloads_building: number;
        };
        workers: {
            total: number;
            runs: {
                node: string;
                user: number;
                query_id: string;
                workers: number;
            }[];
        };
        nodes: {
            id: string;
            name: string;
            takes_work: boolean;
            drained: boolean;
            workers: number;
            ai_latency_us: number;
            silent_ms: number;
            late_us: number;
            resident_bytes: number;
            tasks: number;
            prompt: string;
        }[];
        stores: {
            redis: {
                up: boolean;
                latency_us: number;
                memory_bytes: number;
                memory_bytes_max: number;
                hits: number;
                misses: number;
                hits_permille: number;
                clients: number;
                problem?: string | null;
            };
            mysql: {
                up: boolean;
                latency_us: number;
                memory_bytes: number;
                memory_bytes_max: number;
                hits: number;
                misses: number;
                hits_permille: number;
                clients: number;
                problem?: string | null;
            };
            redis_slowlog: number;
        };
        billing: {
            records: number;
            records_max: number;
            alarm: boolean;
            moves: number;
            drift_cents: number;
            findings: number;
            audited_at?: string | null;
        };
        sessions: {
            users: number;
            admins: number;
        };
        keys: {
            id: number;
            service: "chat" | "embedding";
            key: string;
            name: string;
            state: "active" | "off" | "refused" | "resting" | "capped";
            rests_ms: number;
            requests_used: number;
            requests_limit: number;
            tokens_used: number;
            tokens_limit: number;
            caps: {
                period: "minute" | "day" | "month";
                used: number;
                cap?: number | null;
            }[];
            last_error?: string | null;
            last_error_at?: string | null;
        }[];
        alerts: {
            name: string;
            text: string;
            since: string;
        }[];
        standing: {
            reason_code?:
                | "funds"
                | "account"
                | "banned"
                | "admin"
                | "expired"
                | "unrecorded"
                | "refused"
                | "other"
                | "account_stopped"
                | "repairing"
                | "new_runs_off"
                | "drained"
                | "no_permission"
                | "no_key"
                | "keys_resting"
                | "service_down"
                | "queued"
                | "rate_limit"
                | null;
            reason_facts?: {
                position?: number | null;
                of?: number | null;
                others?: number | null;
                permission?: number | null;
                nodes?: number | null;
                keys?: number | null;
                limit?: number | null;
                since?: string | null;
                until?: string | null;
                cause?: string | null;
                words?: string | null;
            } | null;
            runs: number;
            user: number;
            query_id: string;
        }[];
        ai_errors: {
            service: "chat" | "embedding";
            kind: string;
            count: number;
            words: string;
            last_at?: string | null;
        }[];
    };
    "GET /api/admin/queues": {
        queues: {
            name: string;
            waiting: number;
            delayed: number;
            held: number;
            working: number;
            oldest_seconds: number;
            done: number;
            failed: number;
            failures?: number | null;
            paused: boolean;
            filled: boolean;
        }[];
    };
    "POST /api/admin/queues/{queue}/pause": {
        name: string;
        paused: boolean;
    };
    "POST /api/admin/queues/{queue}/resume": {
        name: string;
        paused: boolean;
    };
    "POST /api/admin/queues/{queue}/retry": {
        name: string;
        jobs: number;
    };
    "POST /api/admin/queues/{queue}/drop": {
        name: string;
        jobs: number;
    };
    "GET /api/admin/audit": {
        actions: {
            id: number;
            at: string;
            admin_uid: number;
            admin: string;
            ip_address: string;
            action: string;
            user?: number | null;
            target?: string | null;
            outcome: "done" | "begun" | "repeated" | "refused" | "failed";
            error?: string | null;
            request_id?: string | null;
            reason?: string | null;
            asked?: string | null;
            before?: {
                balance?: string | null;
                permission?: number | null;
                banned?: boolean | null;
                password?: string | null;
                role?: string | null;
                state?: string | null;
                record?: string | null;
                on?: boolean | null;
                drained?: boolean | null;
                paused?: boolean | null;
                jobs?: number | null;
                posts?: number | null;
                prompt?: string | null;
                active?: boolean | null;
                name?: string | null;
                scopes?: string | null;
                key?: string | null;
                service?: string | null;
                rpm_limit?: number | null;
                tpm_limit?: number | null;
                minute_cap?: number | null;
                day_cap?: number | null;
                month_cap?: number | null;
                batch_id?: number | null;
                imported?: number | null;
                duplicates?: number | null;
                rejected?: number | null;
                dropped?: number | null;
                category?: string | null;
                subcategory?: string | null;
                version?: number | null;
                is_default?: boolean | null;
                units?: number | null;
                papers?: number | null;
            } | null;
            after?: {
                balance?: string | null;
                permission?: number | null;
                banned?: boolean | null;
                password?: string | null;
                role?: string | null;
                state?: string | null;
                record?: string | null;
                on?: boolean | null;
                drained?: boolean | null;
                paused?: boolean | null;
                jobs?: number | null;
                posts?: number | null;
                prompt?: string | null;
                active?: boolean | null;
                name?: string | null;
                scopes?: string | null;
                key?: string | null;
                service?: string | null;
                rpm_limit?: number | null;
                tpm_limit?: number | null;
                minute_cap?: number | null;
                day_cap?: number | null;
                month_cap?: number | null;
                batch_id?: number | null;
                imported?: number | null;
                duplicates?: number | null;
                rejected?: number | null;
                dropped?: number | null;
                category?: string | null;
                subcategory?: string | null;
                version?: number | null;
                is_default?: boolean | null;
                units?: number | null;
                papers?: number | null;
            } | null;
        }[];
        next?: string | null;
    };
    "GET /api/admin/embedding": {
        service: boolean;
        simulated: boolean;
        collections: {
            name: string;
            store: string;
            model?: string | null;
            dimension?: number | null;
            points: number;
            bytes: number;
            building?: string | null;
            reason?: string | null;
            rebuilt: number;
            rebuild_total: number;
        }[];
        posts: {
            pending: number;
            processing: number;
            completed: number;
            failed: number;
        };
        papers: {
            total: number;
            indexed: number;
            embedded: number;
            bare: number;
            refused: number;
            units_pending: number;
            units_working: number;
            units_failed: number;
        };
    };
    "GET /api/admin/embedding/journals": {
        journals: {
            journal: string;
            papers: number;
            indexed: number;
            embedded: number;
            refused: number;
            units_waiting: number;
            units_failed: number;
            changed: boolean;
            error?: string | null;
            reason_code?:
                | "no_money"
                | "account_stopped"
                | "no_permission"
                | "permission_used"
                | "node_lost"
                | "other"
                | "no_embedding_service"
                | "service_down"
                | "refused"
                | "too_slow"
                | "too_long"
                | "bad_answer"
                | null;
        }[];
        next?: string | null;
    };
    "POST /api/admin/embedding/papers": {
        queued: number;
        papers: number;
    };
    "GET /api/admin/pools": {
        pools: {
            type: string;
            group: number;
            usable: number;
            in_list: number;
            handed_out: number;
            used: number;
            unseen: number;
            per_hour: number;
            minutes_left?: number | null;
        }[];
        counted_at: string;
        list_items: number;
        low_minutes: number;
        types: string[];
    };
    "POST /api/admin/pools/{type}/{group}/import": {
        batch_id: number;
        imported: number;
        duplicates_in_file: number;
        duplicates_in_group: number;
        rejected: number;
        read: number;
        line: number;
        column: number;
        columns: number;
        problems: {
            line: number;
            message: string;
        }[];
    };
    "POST /api/admin/pools/{type}/{group}/drop": {
        dropped: number;
    };
    "GET /api/admin/prompt_templates": {
        templates: {
            id: number;
            category: string;
            subcategory: string;
            name: string;
            is_default: boolean;
            version: number;
            changed: string;
            changed_by: string;
        }[];
    };
    "POST /api/admin/prompt_templates": {
        id: number;
        category: string;
        subcategory: string;
        name: string;
        is_default: boolean;
        version: number;
        changed: string;
        changed_by: string;
        template: string;
        variables: {
            name: string;
            type: "text" | "integer" | "number" | "date" | "choice";
            label?: string | null;
            default?: string | null;
            required?: boolean | null;
            choices?: string[] | null;
            least?: number | null;
            most?: number | null;
        }[];
        problem?: string | null;
    };
    "POST /api/admin/prompt_templates/preview": {
        prompt?: string | null;
        tokens?: number | null;
        values: Record<string, string | number | null>;
        problem?: string | null;
    };
    "GET /api/admin/prompt_templates/{template_id}": {
        id: number;
        category: string;
        subcategory: string;
        name: string;
        is_default: boolean;
        version: number;
        changed: string;
        changed_by: string;
        template: string;
        variables: {
            name: string;
            type: "text" | "integer" | "number" | "date" | "choice";
            label?: string | null;
            default?: string | null;
            required?: boolean | null;
            choices?: string[] | null;
            least?: number | null;
            most?: number | null;
        }[];
        problem?: string | null;
    };
    "PUT /api/admin/prompt_templates/{template_id}": {
        id: number;
        category: string;
        subcategory: string;
        name: string;
        is_default: boolean;
        version: number;
        changed: string;
        changed_by: string;
        template: string;
        variables: {
            name: string;
            type: "text" | "integer" | "number" | "date" | "choice";
            label?: string | null;
            default?: string | null;
            required?: boolean | null;
            choices?: string[] | null;
            least?: number | null;
            most?: number | null;
        }[];
        problem?: string | null;
    };
    "POST /api/admin/prompt_templates/{template_id}/default": {
        version: number;
    };
    "GET /api/admin/prompt_templates/{template_id}/versions": {
        versions: {
            id: number;
            category: string;
            subcategory: string;
            name: string;
            is_default: boolean;
            version: number;
            changed: string;
            changed_by: string;
        }[];
    };
    "GET /api/admin/prompt_templates/{template_id}/versions/{version}": {
        id: number;
        category: string;
        subcategory: string;
        name: string;
        is_default: boolean;
        version: number;
        changed: string;
        changed_by: string;
        template: string;
        variables: {
            name: string;
            type: "text" | "integer" | "number" | "date" | "choice";
            label?: string | null;
            default?: string | null;
            required?: boolean | null;
            choices?: string[] | null;
            least?: number | null;
            most?: number | null;
        }[];
        problem?: string | null;
    };
}
