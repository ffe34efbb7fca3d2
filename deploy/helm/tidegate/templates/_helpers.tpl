{{/* The name of everything in this release. A release that is called after the chart does not say it twice. */}}
{{- define "tidegate.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{/* What selects the pods. It cannot change once a Deployment is there. */}}
{{- define "tidegate.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tidegate.labels" -}}
{{ include "tidegate.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "tidegate.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "tidegate.fullname" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end }}

{{/* The Secret that becomes the environment. Without a token in it no pod would start, so it is better not to install. */}}
{{- define "tidegate.secret" -}}
{{- if .Values.secret.existing -}}
{{ .Values.secret.existing }}
{{- else -}}
{{- $_ := required "secret.values.TIDEGATE_ADMIN_TOKEN or secret.existing is required: the admin address needs a token" .Values.secret.values.TIDEGATE_ADMIN_TOKEN -}}
{{ include "tidegate.fullname" . }}
{{- end -}}
{{- end }}

{{/* Whether more than one pod can run: "true" or nothing. */}}
{{- define "tidegate.many" -}}
{{- if or .Values.autoscaling.enabled (gt (int .Values.replicaCount) 1) -}}true{{- end -}}
{{- end }}

{{/* Whether conversations are in a directory of the pod: "true" or nothing. */}}
{{- define "tidegate.embedded" -}}
{{- if hasPrefix "embedded:" .Values.store.url -}}true{{- end -}}
{{- end }}

{{/* Stops an installation whose replicas would each remember something else. */}}
{{- define "tidegate.validate" -}}
{{- if and (include "tidegate.many" .) (or (include "tidegate.embedded" .) (hasPrefix "memory:" .Values.store.url)) -}}
{{- fail (printf "store.url is %s, which is for one pod: several replicas need redis://" .Values.store.url) -}}
{{- end -}}
{{- end }}
